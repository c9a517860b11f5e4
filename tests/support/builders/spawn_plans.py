"""Requests for a child as an interface resolves them, and plans of admitted runs."""

from typing import Any

from application.commands.resolve_request import resolve_request
from application.ports.configurations import PinnedConfiguration
from application.ports.files import Workspaces
from application.spawn.workspace import choose_workspace
from domain.configuration.configuration import Configuration
from domain.plan.child import PlannedChild, RefusedChild, frame_plan, settle_workspace
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.plan.eligibility import EligibilityTable
from domain.plan.request import PlanRequest
from domain.run.facts import STEP_ORDER
from domain.run.state import Run
from domain.spawn.pipeline import ChildFacts, Need
from domain.spawn.request import ResolvedSpawn, SpawnRequest
from domain.spawn.stages import SPAWN_STAGES, decide_child
from tests.support.builders.storytelling import ROOT

# Requests for a sub-agent, as a door resolves them.


def resolved_spawn(
    key: str = ROOT, configuration: Configuration | None = None, /, **members: Any
) -> ResolvedSpawn:
    """Resolve a request with these members of its body.

    Args:
        key: The canonical key of the session that asks; members of `requester` are added.
    """
    about = members.pop("requester", {})
    body = {"task": "look around", **members, "requester": {"sessionKey": key, **about}}
    request = SpawnRequest.model_validate(body)
    return resolve_request(request, configuration or Configuration(), key)


# Plans of runs that were admitted, by the stages that a server goes through.


def plan_spawn(
    run: Run,
    pinned: PinnedConfiguration,
    workspaces: Workspaces,
    *,
    thinking: str | None = None,
    workspace: str | None = None,
    credentials: FoundCredentials = NOTHING_FOUND,
) -> PlannedChild | RefusedChild:
    """Plan the child of a run that has no steps to take; the texts are those beside the log."""
    assert run.agent_id is not None
    agent = pinned.configuration.effective_agent(run.agent_id)
    facts = ChildFacts(
        run=run,
        configuration=pinned.configuration,
        requester_sandboxed=run.requester.sandboxed,
        thinking_argument=thinking,
        agent_id=run.agent_id,
        credentials=credentials,
        places=dict.fromkeys(STEP_ORDER, False),
    )
    facts, found = decide_child(SPAWN_STAGES, facts)
    if found == Need("workspace"):
        chosen = choose_workspace(run, agent, pinned, workspaces, workspace)
        facts, found = decide_child(SPAWN_STAGES, facts.changed({"workspace": chosen}))
    return found if isinstance(found, RefusedChild) else facts.plan


def plan_child(table: EligibilityTable, request: PlanRequest) -> PlannedChild | RefusedChild:
    """Plan a child of which all is known, by the rules of one table."""
    frame = frame_plan(table, request)
    return frame if isinstance(frame, RefusedChild) else settle_workspace(table, frame, request)
