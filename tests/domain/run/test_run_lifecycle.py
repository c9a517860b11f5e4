"""The life of a run, told as sentences."""

from datetime import timedelta

import pytest

from domain.run.decide import dedupe_key
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    PreparationResumed,
    RunAnnounced,
    RunClaimed,
    RunQueued,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
)
from domain.run.evolve import archive_due
from domain.run.facts import Candidate, Cleanup, RunOutcome, SpawnOptions, TranscriptSeal
from domain.run.state import Run
from domain.values.refusals import CannotDeliver, CorruptHistory, LostClaim, NotYet, WrongStage
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.run_histories import CLAIMER, PREPARER
from tests.support.builders.storytelling import CHILD, given, plan, ref, requested, run_of, stamp

STEWARD = (Candidate(script_id="who", priority=10.0, agent_id="steward", verdict="winner"),)


def test_a_run_is_born_by_its_request() -> None:
    run = run_of(*past.a_requested_run())
    assert (run.stage, run.holder, run.epoch, run.depth) == ("requested", "server-1", 1, 1)
    assert (run.created_position, run.created_at) == (1, stamp(1).recorded_at)


def test_another_server_goes_on_with_a_preparation_and_the_first_is_locked_out() -> None:
    story = given(*past.a_resolved_run()).when(ask.resume(PREPARER))
    after = story.then(PreparationResumed(holder="server-2", attempt=2, reason="the lease ran out"))
    after.when(ask.prepare(PREPARER)).refused(LostClaim, "claim 1", "claim 3")
    after.when(ask.prepare(3)).then(past.prepared())


def test_a_script_may_put_another_agent_in_the_place_of_the_one_asked_for() -> None:
    command = ask.resolve(PREPARER, candidates=STEWARD, override_to="steward")
    after = (
        given(*past.a_requested_run())
        .when(command)
        .then(
            ScriptsResolved(receipts=(), candidates=STEWARD),
            AgentOverridden(from_agent_id="main", to_agent_id="steward", candidates=STEWARD),
        )
    )
    assert after.state is not None
    assert (after.state.stage, after.state.agent_id) == ("overridden", "steward")
    assert after.state.requested_agent_id == "main"


@pytest.mark.parametrize("winner", [None, "main"])
def test_an_agent_that_stays_the_same_is_not_overridden(winner: str | None) -> None:
    command = ask.resolve(PREPARER, override_to=winner)
    given(*past.a_requested_run()).when(command).then(past.resolved())


def test_a_session_is_created_with_the_key_that_was_minted_and_queued_at_once() -> None:
    after = (
        given(*past.a_prepared_run())
        .when(ask.create(PREPARER, depth=1))
        .then(SessionCreated, RunQueued(lane="subagent", lane_depth=1))
    )
    run = after.state
    assert run is not None
    assert (run.child_session_key, run.holder, run.queued_position) == (CHILD, None, 5)


def test_a_session_is_not_created_before_its_key_is_minted() -> None:
    given(*past.a_resolved_run()).when(ask.create(PREPARER)).refused(WrongStage, "not prepared")


@pytest.mark.parametrize("history", [past.a_requested_run(), past.a_prepared_run()])
def test_a_preparation_is_refused_by_whoever_holds_it_or_by_nobody(history: past.History) -> None:
    given(*history).when(ask.refuse(PREPARER)).then(past.refused())
    given(*history).when(ask.refuse(None)).then(past.refused())
    given(*history).when(ask.refuse(7)).refused(LostClaim)


def test_a_refusal_whose_caller_is_gone_waits_in_the_inbox() -> None:
    command = ask.refuse(PREPARER, announcement=ref("it failed"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    assert after.state is not None
    assert after.state.inbox is not None
    assert after.state.inbox.text == ref("it failed")
    assert after.state.inbox.dedupe_key == dedupe_key(after.state)
    after.when(ask.acknowledge()).then(AnnouncementAcknowledged(by="main"))


def test_a_refusal_that_was_answered_to_has_nothing_to_acknowledge() -> None:
    given(*past.a_refused_run()).when(ask.acknowledge()).refused(CannotDeliver)


@pytest.mark.parametrize(("running", "width"), [(8, 8), (9, 8), (1, 1)])
def test_a_run_waits_while_its_lane_is_full(running: int, width: int) -> None:
    command = ask.claim(lane_running=running, lane_width=width)
    given(*past.a_queued_run()).when(command).refused(NotYet, f"{running}/{width}")


def test_a_claim_opens_an_epoch_under_which_alone_the_run_is_carried_out() -> None:
    after = given(*past.a_queued_run()).when(ask.claim()).then(past.claimed())
    assert after.state is not None
    assert after.state.epoch == CLAIMER
    after.when(ask.start(PREPARER)).refused(LostClaim)
    after.when(ask.start(CLAIMER)).then(past.started())


def test_a_claim_that_lost_its_holder_is_taken_over_even_in_a_full_lane() -> None:
    full = {"lane_running": 8, "lane_width": 8}
    story = given(*past.a_claimed_run())
    story.when(ask.claim()).refused(LostClaim)
    story.when(ask.claim(lost_epoch=PREPARER)).refused(LostClaim)
    again = ask.claim(holder="server-2", lost_epoch=CLAIMER, **full)
    after = story.when(again).then(RunClaimed(holder="server-2", attempt=2))
    after.when(ask.end(CLAIMER)).refused(LostClaim)


def test_nobody_passes_a_full_lane_by_naming_a_claim_that_never_was() -> None:
    command = ask.claim(lost_epoch=PREPARER, lane_running=8, lane_width=8)
    given(*past.a_queued_run()).when(command).refused(NotYet)


def test_an_end_is_recorded_with_all_that_the_runtime_said() -> None:
    seal = TranscriptSeal(count=3, bytes=99, hmac="ab", path="t.jsonl")
    after = (
        given(*past.a_started_run())
        .when(ask.end(CLAIMER, outcome="error", reason="signal", signal=9, transcript=seal))
        .then(past.ended(outcome="error", reason="signal", signal=9, transcript=seal))
    )
    run = after.state
    assert run is not None
    assert (run.outcome, run.holder, run.transcript_path) == ("error", None, "t.jsonl")


def test_a_run_took_as_long_as_its_runtime_executed() -> None:
    assert run_of(*past.an_ended_run()).runtime_ms == 1000
    assert run_of(*past.a_queued_run(), past.ended(outcome="stopped")).runtime_ms is None


def test_a_run_is_not_announced_while_a_descendant_is_under_way() -> None:
    story = given(*past.an_ended_run_with_pending_descendants(2))
    story.when(ask.announce(pending_descendants=2)).refused(NotYet, "2 descendants")


def test_an_announcement_is_known_by_its_key_and_acknowledged_once() -> None:
    after = given(*past.an_ended_run()).when(ask.announce()).then(past.announced())
    after = after.when(ask.acknowledge()).then(past.acknowledged())
    after.when(ask.acknowledge()).then()


@pytest.mark.parametrize("disposition", ["skipped", "not_required"])
def test_what_was_not_put_into_the_inbox_is_not_acknowledged(disposition: str) -> None:
    command = ask.announce(disposition=disposition, text=None)
    after = given(*past.an_ended_run()).when(command).then(RunAnnounced)
    after.when(ask.acknowledge()).refused(CannotDeliver)


def test_an_acknowledgement_of_nothing_is_a_corrupt_history() -> None:
    with pytest.raises(CorruptHistory, match="never made"):
        run_of(*past.a_refused_run(), past.acknowledged())


@pytest.mark.parametrize(
    ("cleanup", "minutes", "announced_after", "archived_after"),
    [
        ("keep", 60, timedelta(0), timedelta(minutes=60)),
        ("keep", 60, timedelta(hours=5), timedelta(hours=5)),
        ("keep", 0, timedelta(hours=5), None),
        ("delete", 60, timedelta(minutes=5), timedelta(minutes=5)),
        ("delete", 0, timedelta(minutes=5), timedelta(minutes=5)),
    ],
)
def test_a_run_is_archived_so_long_after_its_end_but_never_before_it_is_announced(
    cleanup: Cleanup, minutes: int, announced_after: timedelta, archived_after: timedelta | None
) -> None:
    run = _ended(SpawnOptions(cleanup=cleanup), archive_after_minutes=minutes)
    assert run.ended_at is not None
    due = None if archived_after is None else run.ended_at + archived_after
    assert archive_due(run, run.ended_at + announced_after) == due


@pytest.mark.parametrize(("outcome", "is_archived"), [("stopped", True), ("success", False)])
def test_a_session_that_lives_on_is_archived_only_when_stopped(
    outcome: RunOutcome, is_archived: bool
) -> None:
    run = _ended(SpawnOptions(mode="session"), outcome=outcome, archive_after_minutes=1)
    now = stamp(20).recorded_at
    assert archive_due(run, now) == (now if is_archived else None)


def test_the_archive_is_due_from_the_announcement_on_and_over_with_the_archiving() -> None:
    announced = run_of(*past.an_announced_run())
    assert announced.archive_at == stamp(8).recorded_at + timedelta(minutes=60)
    archived = run_of(*past.an_announced_run(), past.archived(transcript_path="t.deleted"))
    assert (archived.stage, archived.transcript_path) == ("archived", "t.deleted")
    assert archived.archived_at == stamp(10).recorded_at


def _ended(
    options: SpawnOptions, *, archive_after_minutes: int, outcome: RunOutcome = "success"
) -> Run:
    return run_of(
        requested(options=options),
        *past.a_prepared_run()[1:],
        past.created(plan=plan(archive_after_minutes=archive_after_minutes)),
        *past.a_started_run()[4:],
        past.ended(outcome=outcome),
    )
