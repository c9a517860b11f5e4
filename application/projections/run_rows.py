"""The registry of runs: one row per state, with the columns used in searches."""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from application.projections.projection import Position, Projection
from domain.run.lifecycle import PREPARING
from domain.run.state import Run

DueKind = Literal["prepare", "wait", "run", "continue", "announce", "archive"]


class RunRow(NamedTuple):
    """A state of a run.

    Attributes:
        due_kind: The next action due for the run.
        due_at: When it is due.
        effects_at: When an undo, hook or webhook is due, whatever else is.
        parked_position: Where a delivery of its announcement was last parked.
        rule: The rule that refused it.
        respawned_from: The run that it was made from.
    """

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
"""Columns with an index that returns the rows of a value by creation."""


def lane_place(run: Run) -> tuple[str, int] | None:
    """Return the lane and the depth at which the run waits or holds a slot; None if neither."""
    if run.stage not in ("queued", "started") or run.lane is None or run.lane_depth is None:
        return None
    return run.lane, run.lane_depth


def run_row(run: Run) -> RunRow:
    """Return the row of a state."""
    inbox, requester, stage = run.inbox, run.requester, run.stage
    lane, lane_depth = lane_place(run) or (None, None)
    # Positional, because keyword arguments for this many fields cost more than the rest of the row.
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
    """Return the next action for the run, and when it is due."""
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
    """Return when the session continues: with a waiting message, else with its children's
    reports."""
    if run.queue:
        return "continue", run.ended_at
    return ("continue", run.wake_at) if run.wake_at is not None else (None, None)


RUNS = Projection("runs", "run", 1, Run, RunRow, run_row)
