"""The folder that a child works in: the requester's for a child of the same agent, else its agent's
own."""

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.files import WorkspaceForbiddenError, Workspaces
from application.steps.workspace import unusable_workspace_text
from domain.configuration.configuration import EffectiveAgent
from domain.plan.request import ChosenWorkspace
from domain.run.events import SpawnRequested
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run

REPLACED_WORKSPACE = (
    "The workspace of the run has changed since the spawn was accepted: the folder is missing,"
    " or its path now leads to another one. Find out why, restore the folder and spawn again,"
    " or resend the message if the session is open."
)


def choose_workspace(
    run: Run,
    agent: EffectiveAgent,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    requested: str | None,
) -> ChosenWorkspace:
    """Choose the folder of a child of `agent`.

    An inherited folder must exist; the agent's own is created later, by a step of the preparation.

    Args:
        requested: The requester's folder according to the request. Ignored for a child of another
            agent.
    """
    warnings = _warnings(run, requested)
    recorded = run.requester.workspace_dir if run.is_of_same_agent else None
    named = requested if run.is_of_same_agent else None
    is_inherited = recorded is not None or named is not None
    facts = WorkspaceFacts(source="requester" if is_inherited else "agent", recorded=recorded)
    try:
        folder = workspaces.workspace_of(pinned, agent, recorded=recorded, requested=named)
    except WorkspaceForbiddenError as forbidden:
        return ChosenWorkspace(facts, str(forbidden), warnings)
    except OSError as error:
        text = unusable_workspace_text(error, agent.id, recorded, named)
        return ChosenWorkspace(facts, text, warnings)
    return ChosenWorkspace(facts.changed({"chosen": folder}), warnings=warnings)


def _warnings(run: Run, requested: str | None) -> tuple[str, ...]:
    """Return a warning if the requested folder is not used. It omits the path, because events store
    warnings."""
    if requested is None or run.is_of_same_agent:
        return ()
    return (
        f'The workspaceDir of the request was not used: the child is of agent "{run.agent_id}"'
        " and works in that agent's own folder. Only a child with the requester's agent works"
        " in the requester's folder.",
    )


async def read_requested_workspace(work: UnitOfWork, run: Run) -> str | None:
    """Return the folder that the recorded request named."""
    argument = (await work.event(SpawnRequested, run.run_id)).workspace_argument
    return await work.contents.text(argument) if argument else None
