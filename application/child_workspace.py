"""The folder that a child works in: its requester's for a child of the same agent, else its
agent's own."""

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import (
    Configurations,
    PinnedConfiguration,
    WorkspaceForbidden,
)
from domain.run.events import SpawnRequested
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.values.refusals import Refusal

REPLACED_WORKSPACE = (
    "The workspace of the run is not the folder it was when the spawn was accepted: it has gone, or"
    " a link leads from its path to another one. Look who replaced it, put the folder back and"
    " spawn again, or send the message again to a session that is open."
)


def choose_workspace(
    run: Run,
    pinned: PinnedConfiguration,
    configurations: Configurations,
    requested: str | None,
) -> tuple[WorkspaceFacts, Refusal | None]:
    """What was chosen, and the refusal when that folder cannot be had.

    `requested` is the folder that the request says its requester works in. It tells of the
    requester, so a child of another agent has nothing of it. An inherited folder has to be
    there; the agent's own is made later, by a step of the preparation.
    """
    assert run.agent_id is not None
    recorded = run.requester.workspace_dir if run.is_of_same_agent else None
    named = requested if run.is_of_same_agent else None
    is_inherited = recorded is not None or named is not None
    facts = WorkspaceFacts(source="requester" if is_inherited else "agent", recorded=recorded)
    try:
        folder = configurations.workspace_of(
            pinned, run.agent_id, recorded=recorded, requested=named
        )
    except WorkspaceForbidden as forbidden:
        return facts, _workspace_refusal(str(forbidden))
    except OSError as error:
        return facts, _workspace_refusal(
            unusable_workspace_text(error, run.agent_id, recorded, named)
        )
    return facts.changed({"chosen": folder}), None


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
    recorded = await work.log.first("SpawnRequested", run.run_id)
    assert recorded is not None
    assert isinstance(recorded.event, SpawnRequested)
    argument = recorded.event.workspace_argument
    return await work.contents.text(argument) if argument else None


def unusable_workspace_text(
    error: OSError, agent_id: str, recorded: str | None = None, named: str | None = None
) -> str:
    """What the caller is told of a folder that cannot be had, by whose folder it is."""
    reason = error.strerror or type(error).__name__
    if named is not None:
        return (
            f"The workspace that the request names cannot be used: {reason}."
            " Name a folder that is there, or leave workspaceDir out."
        )
    if recorded is not None:
        return (
            f"The workspace on record for the requester cannot be used: {reason}."
            " Put the folder back, or ask from another session."
        )
    return (
        f'The workspace of agent "{agent_id}" cannot be made: {reason}.'
        " Give the agent another workspace, or mend this one."
    )


def _workspace_refusal(text: str) -> Refusal:
    return Refusal(rule="workspace", status="error", text=text)
