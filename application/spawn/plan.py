"""The plan of a child, from the record and the pinned configuration."""

from dataclasses import dataclass, replace
from functools import lru_cache

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbidden, Workspaces
from application.steps.workspace import unusable_workspace_text
from domain.configuration.configuration import EffectiveAgent
from domain.plan.child import (
    IneligiblePlan,
    PlannedChild,
    frame_plan,
    plan_child,
    plan_with_hours,
    settle_workspace,
)
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY
from domain.plan.request import ChosenWorkspace, PlanRequest, shape_of
from domain.run.events import SpawnRequested
from domain.run.facts import Plan
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run

FRAMES_MAX = 256
"""So many plans are kept, each without its folder: one for an agent, a revision of the
configuration, its credentials and a shape of request."""


@lru_cache(maxsize=FRAMES_MAX)
def _frame(request: PlanRequest) -> PlannedChild | IneligiblePlan:
    return frame_plan(ELIGIBILITY, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTexts:
    """What was asked for and is kept beside the log: the word for a level of thinking that is
    none, and the folder of the requester."""

    thinking: str | None = None
    workspace: str | None = None


def plan_spawn(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    texts: PlanTexts,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | IneligiblePlan:
    """The plan for the `agent` that will run, whose `credentials` these are, or the rule that
    refuses it."""
    request = PlanRequest(
        shape=shape_of(run),
        agent=agent,
        requester_sandboxed=run.requester.sandboxed,
        thinking_argument=texts.thinking,
        credentials=credentials,
    )
    # A text that can be erased is not kept here.
    is_kept = texts.thinking is None
    frame = _frame(request) if is_kept else frame_plan(ELIGIBILITY, request)
    if isinstance(frame, IneligiblePlan):
        return frame
    chosen = choose_workspace(run, agent, pinned, workspaces, texts.workspace)
    planned = settle_workspace(
        ELIGIBILITY, frame, replace(request, choose_workspace=lambda: chosen)
    )
    if isinstance(planned, IneligiblePlan):
        return planned
    warnings = (*planned.warnings, *workspace_warnings(run, texts.workspace))
    return replace(
        planned, plan=plan_with_hours(planned.plan, run, pinned.configuration), warnings=warnings
    )


def plan_continuation(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    last: Plan,
    thinking: str | None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | IneligiblePlan:
    """The plan of a run that goes on with a session, by the configuration of today: but it works
    where the run before it did, whose plan is `last`."""
    folder = last.workspace_dir
    facts = WorkspaceFacts(source=last.workspace_source, recorded=folder, chosen=folder)
    request = PlanRequest(
        shape=shape_of(run),
        agent=agent,
        requester_sandboxed=run.requester.sandboxed,
        thinking_argument=thinking,
        credentials=credentials,
        choose_workspace=lambda: ChosenWorkspace(facts),
    )
    planned = plan_child(CONTINUED_ELIGIBILITY, request)
    if isinstance(planned, IneligiblePlan):
        return planned
    return replace(planned, plan=plan_with_hours(planned.plan, run, pinned.configuration))


# The folder that a child works in: its requester's for a child of the same agent, else its agent's
# own.


REPLACED_WORKSPACE = (
    "The workspace of the run is not the folder it was when the spawn was accepted: it has gone, or"
    " a link leads from its path to another one. Look who replaced it, put the folder back and"
    " spawn again, or send the message again to a session that is open."
)


def choose_workspace(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    requested: str | None,
) -> ChosenWorkspace:
    """What was chosen, and why that folder cannot be had when it cannot.

    `requested` is the folder that the request says its requester works in. It tells of the
    requester, so a child of another agent has nothing of it. An inherited folder has to be
    there; the agent's own is made later, by a step of the preparation.
    """
    recorded = run.requester.workspace_dir if run.is_of_same_agent else None
    named = requested if run.is_of_same_agent else None
    is_inherited = recorded is not None or named is not None
    facts = WorkspaceFacts(source="requester" if is_inherited else "agent", recorded=recorded)
    try:
        folder = workspaces.workspace_of(pinned, agent, recorded=recorded, requested=named)
    except WorkspaceForbidden as forbidden:
        return ChosenWorkspace(facts, str(forbidden))
    except OSError as error:
        text = unusable_workspace_text(error, agent.id, recorded, named)
        return ChosenWorkspace(facts, text)
    return ChosenWorkspace(facts.changed({"chosen": folder}))


def workspace_warnings(run: Run, requested: str | None) -> tuple[str, ...]:
    """What the caller is told when the folder that its request names is not used. The folder is
    not named: a warning goes into an event."""
    if requested is None or run.is_of_same_agent:
        return ()
    return (
        f'The workspaceDir of the request was not used: the child is of agent "{run.agent_id}" and'
        " works in that agent's own folder. Only a child of its requester's agent works where it"
        " does.",
    )


async def read_requested_workspace(work: UnitOfWork, run: Run) -> str | None:
    """The folder that the request named, as it is on record."""
    argument = (await work.event(SpawnRequested, run.run_id)).workspace_argument
    return await work.contents.text(argument) if argument else None
