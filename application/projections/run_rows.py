"""The registry: one row per state of a run, with the columns it is searched by."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from application.projections.projection import Position, Projection
from domain.run.lifecycle import PREPARING
from domain.run.state import Run

DueKind = Literal["prepare", "wait", "run", "continue", "announce", "archive"]


class RunRow(NamedTuple):
    """A state of a run. `due_kind` and `due_at` say what somebody has to do for it next,
    `effects_at` when something outside has to be undone or told, whatever else there is to do.
    `parked_position` is where its announcement was last said to be sent to somebody no more, `rule`
    the one that refused it, `respawned_from` the run that it was made from."""

    run_id: UUID
    version: int
    created_position: Position
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
    queued_position: Position | None
    holder: str | None
    epoch: int
    due_kind: DueKind | None
    due_at: datetime | None
    effects_at: datetime | None
    inbox_position: Position | None
    parked_position: Position | None
    rule: str | None
    depth: int
    respawned_from: UUID | None
    state: Run


COLUMNS_BY_CREATION = frozenset({"requester", "root", "label", "rule", "respawned_from"})
"""Columns of which an index gives the rows of one value by creation."""


def lane_place(run: Run) -> tuple[str, int] | None:
    """Return the lane and the depth at which the run waits or holds a slot; None if neither."""
    if run.stage not in ("queued", "started") or run.lane is None or run.lane_depth is None:
        return None
    return run.lane, run.lane_depth


def run_row(run: Run) -> RunRow:
    """The row of a state."""
    inbox, requester, stage = run.inbox, run.requester, run.stage
    lane, lane_depth = lane_place(run) or (None, None)
    # In the order of the fields: names for so many take longer than the row.
    return RunRow(
        run.run_id,
        run.version,
        run.created_position,
        run.created_at,
        stage,
        run.outcome,
        run.session_id,
        requester.session_key,
        requester.root_session_key,
        run.child_session_key,
        run.agent_id,
        run.label,
        lane,
        lane_depth,
        run.queued_position if lane is not None else None,
        run.holder,
        run.epoch,
        *due(run),
        run.effects_at,
        inbox.position if inbox is not None and inbox.disposition == "inbox" else None,
        inbox.position if inbox is not None and run.is_parked else None,
        run.refusal.rule if run.refusal is not None else None,
        run.depth,
        run.respawn.run_id if run.respawn is not None else None,
        run,
    )


def due(run: Run) -> tuple[DueKind | None, datetime | None]:
    """What has to be done for the run next, and not before when."""
    if run.stage in PREPARING:
        return "prepare", run.created_at
    if run.stage == "session-created" and run.waits_for is not None:
        return "wait", run.created_at
    if run.holder is not None:
        return "run", run.started_at or run.created_at
    if run.is_paused:
        return _continuation_due(run)
    if run.stage == "ended" and run.pending_descendants == 0:
        return "announce", run.ended_at
    if run.stage == "announced" and run.queue and run.continued_by is None:
        return "continue", run.announced_at
    if run.stage == "announced" and run.archive_at is not None:
        return "archive", run.archive_at
    return None, None


def _continuation_due(run: Run) -> tuple[DueKind | None, datetime | None]:
    """What its session goes on with: a message that waits, else what its children report."""
    if run.queue:
        return "continue", run.ended_at
    return ("continue", run.wake_at) if run.wake_at is not None else (None, None)


RUNS = Projection("runs", "run", 1, Run, RunRow, run_row)
