"""The registry: one row per state of a run, with the columns it is searched by."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from domain.run.lifecycle import PREPARING
from domain.run.state import Run

VERSION = 2
"""Raised when the rows change for the same events; the projection is then made anew."""

DueKind = Literal["prepare", "run", "announce", "archive"]


class RunRow(NamedTuple):
    """A state of a run. `due_kind` and `due_at` say what somebody has to do for it next."""

    run_id: UUID
    version: int
    created_position: int
    created_at: datetime
    stage: str
    outcome: str | None
    session_id: UUID
    requester: str
    root: str
    child_session_key: str | None
    agent_id: str | None
    label: str | None
    lane: str | None
    lane_depth: int | None
    queued_position: int | None
    holder: str | None
    epoch: int
    due_kind: DueKind | None
    due_at: datetime | None
    inbox_position: int | None
    state: Run


def run_row(run: Run) -> RunRow:
    """The row of a state."""
    due_kind, due_at = due(run)
    in_inbox = run.inbox is not None and run.inbox.disposition == "inbox"
    return RunRow(
        run_id=run.run_id,
        version=run.version,
        created_position=run.created_position,
        created_at=run.created_at,
        stage=run.stage,
        outcome=run.outcome,
        session_id=run.session_id,
        requester=run.requester.session_key,
        root=run.requester.root_session_key,
        child_session_key=run.child_session_key,
        agent_id=run.agent_id,
        label=run.label,
        lane=run.lane if run.stage in ("queued", "started") else None,
        lane_depth=run.lane_depth if run.stage in ("queued", "started") else None,
        queued_position=run.queued_position if run.stage in ("queued", "started") else None,
        holder=run.holder,
        epoch=run.epoch,
        due_kind=due_kind,
        due_at=due_at,
        inbox_position=run.inbox.position if in_inbox and run.inbox else None,
        state=run,
    )


def due(run: Run) -> tuple[DueKind | None, datetime | None]:
    """What has to be done for the run next, and not before when."""
    if run.stage in PREPARING:
        return "prepare", run.created_at
    if run.holder is not None:
        return "run", run.started_at or run.created_at
    if run.stage == "ended" and run.pending_descendants == 0:
        return "announce", run.ended_at
    if run.stage == "announced" and run.archive_at is not None:
        return "archive", run.archive_at
    return None, None
