"""The lifecycle of a run."""

from datetime import timedelta
from pathlib import Path

import pytest

from domain.run.decide import NOT_CLAIMED, dedupe_key
from domain.run.events import (
    AgentOverridden,
    AnnouncementAcknowledged,
    PreparationResumed,
    RunEnded,
    ScriptsResolved,
    SpawnRefused,
)
from domain.run.evolve import archive_due
from domain.run.facts import Candidate, Cleanup, Requester, RunOutcome, SpawnOptions, TranscriptSeal
from domain.run.lifecycle import mermaid
from domain.run.state import Run
from domain.values.record import ContentRef
from domain.values.refusals import LostClaim, NotYet, WrongStage
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog
from tests.support.builders.run_histories import CLAIMER, PREPARER
from tests.support.builders.storytelling import given, plan, ref, requested, requester, run_of
from tests.support.tiers import examples
from world.model.lives import MANNERS, Lives

pytestmark = pytest.mark.long

# Lifecycle of a run, one example per transition.

STEWARD = (Candidate(script_id="who", priority=10.0, agent_id="steward", verdict="winner"),)


def test_resumed_preparation_locks_out_the_first_server() -> None:
    story = given(*past.a_resolved_run()).when(ask.resume(PREPARER))
    after = story.then(PreparationResumed(holder="server-2", attempt=2, reason="the lease ran out"))
    after.when(ask.prepare(PREPARER)).refused(LostClaim, "claim 1", "claim 3")
    after.when(ask.prepare(3)).then(past.prepared())


def test_script_overrides_the_requested_agent() -> None:
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


@pytest.mark.parametrize("history", [past.a_requested_run(), past.a_prepared_run()])
def test_preparation_is_refused_by_holder_or_nobody(history: past.History) -> None:
    given(*history).when(ask.refuse(PREPARER)).then(past.refused())
    given(*history).when(ask.refuse(None)).then(past.refused())
    given(*history).when(ask.refuse(7)).refused(LostClaim)


def test_refusal_of_abandoned_spawn_waits_in_the_inbox() -> None:
    command = ask.refuse(PREPARER, announcement=ref("it failed"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    assert after.state is not None
    assert after.state.inbox is not None
    assert after.state.inbox.text == ref("it failed")
    assert after.state.inbox.dedupe_key == dedupe_key(after.state)
    after.when(ask.acknowledge()).then(AnnouncementAcknowledged(by="main"))


def test_claim_opens_an_epoch_of_its_own() -> None:
    after = given(*past.a_queued_run()).when(ask.claim()).then(past.claimed())
    assert after.state is not None
    assert after.state.epoch == CLAIMER
    after.when(ask.start(PREPARER)).refused(LostClaim)
    after.when(ask.start(CLAIMER)).then(past.started())


def test_unknown_lost_claim_does_not_pass_a_full_lane() -> None:
    command = ask.claim(lost_epoch=PREPARER, lane_running=8, lane_width=8)
    given(*past.a_queued_run()).when(command).refused(NotYet)


def test_end_is_recorded_with_all_that_the_runtime_said() -> None:
    seal = TranscriptSeal(count=3, bytes=99, hmac="ab", path="t.jsonl")
    after = (
        given(*past.a_started_run())
        .when(ask.end(CLAIMER, outcome="error", reason="signal", signal=9, transcript=seal))
        .then(past.ended(outcome="error", reason="signal", signal=9, transcript=seal))
    )
    run = after.state
    assert run is not None
    assert (run.outcome, run.holder, run.transcript_path) == ("error", None, "t.jsonl")


def test_run_with_pending_descendants_is_not_announced() -> None:
    story = given(*past.an_ended_run_with_pending_descendants(2))
    story.when(ask.announce(pending_descendants=2)).refused(NotYet, "2 descendants")


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
def test_archive_is_due_after_end_and_announcement(
    cleanup: Cleanup, minutes: int, announced_after: timedelta, archived_after: timedelta | None
) -> None:
    run = _ended(SpawnOptions(cleanup=cleanup), archive_after_minutes=minutes)
    assert run.ended_at is not None
    due = None if archived_after is None else run.ended_at + archived_after
    assert archive_due(run, run.ended_at + announced_after) == due


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


# Only a run that no executor claimed is ended without a holder.


def test_only_an_unclaimed_run_ends_as_not_claimed() -> None:
    log = FamilyLog()
    for name in ("scout", "late"):
        log.spawn(name)
        log.create(name)
    waiting = log.run("scout")
    unclaimed = ask.end(waiting.epoch, outcome="error", reason=NOT_CLAIMED)
    with pytest.raises(WrongStage, match="not claimed"):
        log.tell("scout", ask.end(waiting.epoch))
    read_before = ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED)
    log.tell("late", ask.claim())
    with pytest.raises(LostClaim):
        log.tell("late", read_before)
    with pytest.raises(WrongStage, match="claimed"):
        log.tell("late", ask.end(log.run("late").epoch, outcome="error", reason=NOT_CLAIMED))
    log.tell("scout", unclaimed)
    assert (log.run("scout").outcome, log.run("scout").started_at) == ("error", None)


# Stopping a run at any point of its life.


@pytest.mark.parametrize("history", [past.a_requested_run(), past.an_overridden_run()])
def test_stop_during_preparation_is_a_refusal(history: past.History) -> None:
    stage = run_of(*history).stage
    refusal = past.refused(rule="stopped", step=stage, text=ref("stopped by operator"))
    given(*history).when(ask.stop()).then(refusal)


@pytest.mark.parametrize("history", [past.a_created_run(), past.a_queued_run()])
def test_stop_of_a_run_that_waits_ends_it(history: past.History) -> None:
    after = (
        given(*history)
        .when(ask.stop(by_requester=True))
        .then(
            RunEnded(
                outcome="stopped",
                reason="stopped",
                error=ref("enough"),
                stopped_by="operator",
                stopped_by_requester=True,
            )
        )
    )
    assert after.state is not None
    assert after.state.stop_by_requester


@pytest.mark.parametrize(
    ("reason", "claimed", "recorded"),
    [("interrupted", "error", "stopped"), ("exit", "success", "success")],
)
def test_stopping_run_ends_as_stopped_if_holder_is_lost(
    reason: str, claimed: RunOutcome, recorded: RunOutcome
) -> None:
    story = given(*past.a_started_run(), past.stop_requested())
    after = story.when(ask.end(CLAIMER, outcome=claimed, reason=reason)).then(RunEnded)
    assert after.state is not None
    assert (after.state.outcome, after.state.stop_requested_by) == (recorded, "operator")


def test_stop_of_abandoned_spawn_waits_in_the_inbox() -> None:
    command = ask.stop(announcement=ref("it was stopped"))
    after = given(*past.a_resolved_run()).when(command).then(SpawnRefused)
    run = after.state
    assert run is not None
    assert run.inbox is not None
    assert (run.inbox.text, run.inbox.dedupe_key) == (ref("it was stopped"), dedupe_key(run))


# `make docs` draws the table in docs/architecture.md.

ARCHITECTURE = Path(__file__).parents[3] / "docs" / "architecture.md"
BEFORE, AFTER = "<!-- lifecycle -->", "<!-- /lifecycle -->"


def test_architecture_page_shows_the_lifecycle_of_the_code() -> None:
    text = ARCHITECTURE.read_text()
    assert (text.count(BEFORE), text.count(AFTER)) == (1, 1)
    shown = text.split(BEFORE)[1].split(AFTER)[0].strip()
    assert shown == f"```mermaid\n{mermaid()}\n```", "run: make docs"


# Invariants of a tree of runs under random commands in any order.


TestLives = Lives.TestCase
TestLives.settings = examples(60, stateful_step_count=40)


@pytest.mark.parametrize("manner", [*MANNERS])
@pytest.mark.parametrize("is_held", [True, False])
def test_message_after_a_stop_is_judged_by_the_model(manner: str, is_held: bool) -> None:
    lives = Lives()
    lives.begin(children=2, width=1, chain=1, manner=manner)
    lives.spawn(1, None, manner)
    lives.advance(0, 3)
    first, second = lives.tree.lives.values()
    stopped = first if is_held else second
    assert (stopped.stage, stopped.is_held) == ("started" if is_held else "queued", is_held)
    lives.tell(stopped, "stop")
    for kind in (None, *(("end",) if is_held else ()), "announce"):
        if kind is not None:
            lives.tell(stopped, kind)
        for pick in range(2):
            lives.message(pick=pick, as_read=False, waits=False)
        lives.the_log_and_the_model_agree()
        lives.places_and_lanes_are_as_the_whole_tree_says()
    lives.teardown()


ASKED_FROM = requester(origin=ref("asked"))


@pytest.mark.parametrize(
    ("asks", "thread", "hook", "expected"),
    [
        (ASKED_FROM, None, None, ref("asked")),
        (ASKED_FROM, ref("thread"), None, ref("thread")),
        (ASKED_FROM, ref("thread"), ref("hook"), ref("hook")),
        (requester(origin=ref("asked"), depth=1), None, ref("hook"), None),
    ],
)
def test_announcement_goes_to_hook_thread_or_requester(
    asks: Requester, thread: ContentRef | None, hook: ContentRef | None, expected: ContentRef | None
) -> None:
    begun = (requested(requester=asks), *past.a_started_run()[1:], past.ended())
    run = run_of(*begun, past.announced(origin=hook)).changed({"delivery_origin": thread})
    assert run.inbox_target == expected
