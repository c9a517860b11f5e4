"""Registry row of a run: its due work, and the values to search by."""

from datetime import timedelta

import pytest

from application.projections.run_rows import DueKind, due, run_row
from tests.support.builders import run_histories as past
from tests.support.builders.run_histories import CLAIMER
from tests.support.builders.storytelling import ROOT, START, run_of

CREATED, STARTED, ENDED = 1, 7, 8
WAITING = past.an_ended_run_with_pending_descendants()


@pytest.mark.parametrize(
    ("history", "kind", "after_seconds"),
    [
        (past.a_requested_run(), "prepare", CREATED),
        (past.an_overridden_run(), "prepare", CREATED),
        (past.a_prepared_run(), "prepare", CREATED),
        (past.a_queued_run(), None, None),
        (past.a_claimed_run(), "run", CREATED),
        (past.a_started_run(), "run", STARTED),
        (past.an_ended_run(), "announce", ENDED),
        (WAITING, None, None),
        ((*WAITING, past.settled()), "announce", ENDED),
        (past.an_announced_run(), "archive", ENDED + 3600),
        (past.an_archived_run(), None, None),
        (past.a_refused_run(), None, None),
    ],
)
def test_due_work_has_its_time(
    history: past.History, kind: DueKind | None, after_seconds: int | None
) -> None:
    at = None if after_seconds is None else START + timedelta(seconds=after_seconds)
    assert due(run_of(*history)) == (kind, at)


def test_run_is_in_its_lane_until_its_end() -> None:
    before, in_lane = run_row(run_of(*past.a_created_run())), run_row(run_of(*past.a_started_run()))
    after = run_row(run_of(*past.an_ended_run()))
    assert (in_lane.lane, in_lane.lane_depth, in_lane.queued_position) == ("subagent", 1, 5)
    for row in (before, after):
        assert (row.lane, row.lane_depth, row.queued_position) == (None, None, None)


def test_row_has_holder_and_epoch() -> None:
    row = run_row(run_of(*past.a_claimed_run()))
    assert (row.holder, row.epoch) == ("server-1", CLAIMER)
    assert run_row(run_of(*past.a_queued_run())).holder is None


def test_only_delivered_run_has_an_inbox_position() -> None:
    skipped = past.announced(disposition="skipped", text=None)
    assert run_row(run_of(*past.an_announced_run())).inbox_position == 9
    assert run_row(run_of(*past.an_ended_run(), skipped)).inbox_position is None
    assert run_row(run_of(*past.a_resolved_run(), past.refused_and_told())).inbox_position == 3


def test_row_has_owner_and_state() -> None:
    run = run_of(*past.an_ended_run())
    row = run_row(run)
    assert (row.requester, row.root, row.outcome, row.stage) == (ROOT, ROOT, "success", "ended")
    assert (row.version, row.state) == (run.version, run)


def test_undo_is_due_beside_other_work() -> None:
    steps = past.a_run_with_steps()
    assert run_row(run_of(*steps)).effects_at is None
    refused = run_row(run_of(*steps, past.refused()))
    assert (refused.effects_at, refused.due_kind) == (START + timedelta(seconds=8), None)
    result = (*steps, past.created(), past.queued(), past.ended(), past.announced())
    announced = run_row(run_of(*result))
    assert (announced.effects_at, announced.due_kind) == (START + timedelta(seconds=11), "archive")
    assert run_row(run_of(*result, past.step_undone())).effects_at is None
