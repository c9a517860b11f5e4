"""A lane as it is after the submissions of a batch that were decided before."""

from collections.abc import Mapping
from uuid import UUID

from application.log.event_log import LaneFacts, LaneQuery
from application.projections.run_rows import run_row
from domain.run.state import Run


def overlay_lane(
    query: LaneQuery, read: LaneFacts, before: Mapping[UUID, Run], changed: Mapping[UUID, Run]
) -> LaneFacts:
    """What was read of the lane, with the runs that have changed since; `before` is how they were
    then, without those that are new."""
    running = read.running
    for run_id, run in changed.items():
        known = before.get(run_id)
        running -= known is not None and _takes_a_slot(known, query)
        running += _takes_a_slot(run, query)
    following = (changed.get(run.run_id, run) for run in read.next)
    waiting = (run for run in following if run.stage == "queued" and run.holder is None)
    return LaneFacts(running, tuple(waiting))


def _takes_a_slot(run: Run, query: LaneQuery) -> bool:
    row = run_row(run)
    return (row.lane, row.lane_depth) == (query.lane, query.depth) and row.holder is not None
