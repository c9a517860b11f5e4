"""How a session goes on behind a run: what waits, what is yielded, what is steered."""

from datetime import timedelta

import pytest

from application.projections.run_rows import due
from domain.run.continuation import (
    QUEUED_MESSAGES_MAX,
    CannotYield,
    QueueFull,
    SteeredTooSoon,
)
from domain.run.events import (
    ContinuationFailed,
    MessageQueued,
    MessagesDropped,
    RunEnded,
    RunEvent,
    YieldRequested,
)
from domain.run.facts import HOOK_ORDER
from domain.run.state import Run
from domain.values.refusals import NotYet, WrongStage
from tests.support.builders import continued_runs as sent
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import at, given, ref, run_id, run_of

STARTED = past.a_started_run()
YIELDED = (*STARTED, sent.yield_requested(), past.ended(reason="yielded"))
STEER = sent.message_queued("stop that", cause="steer")
STEERED = (*STARTED, STEER, past.ended(outcome="stopped", reason="steered"))
WOKEN = (*YIELDED, sent.children_reported(3))


def ended_of(*events: RunEvent, **changes: object) -> RunEnded:
    """How it ends, when its runtime has ended so."""
    run = run_of(*events)
    after = given(*events).when(ask.end(run.epoch, **changes)).after()
    ended = after.events[-1]
    assert isinstance(ended, RunEnded)
    return ended


def test_a_message_waits_behind_those_that_wait() -> None:
    first = given(*STARTED).when(sent.queue("one")).after().events
    run = given(*first).when(sent.queue("two", run_id=run_id(8))).after().state
    assert run is not None
    assert [(one.run_id, one.message, one.by) for one in run.queue or ()] == [
        (run_id(7), ref("one"), "admin"),
        (run_id(8), ref("two"), "admin"),
    ]


def test_there_is_room_for_twenty_messages() -> None:
    waiting = tuple(sent.message_queued(run_id=run_id(20 + n)) for n in range(QUEUED_MESSAGES_MAX))
    with pytest.raises(QueueFull, match="20 messages wait for this session already"):
        given(*STARTED, *waiting).when(sent.queue()).after()


def test_nothing_waits_for_a_session_that_is_not_there_yet() -> None:
    with pytest.raises(WrongStage):
        given(*past.a_prepared_run()).when(sent.queue()).after()


def test_a_message_that_steers_is_taken_before_those_that_wait() -> None:
    run = run_of(
        *STARTED, sent.message_queued(), sent.message_queued(run_id=run_id(8), cause="steer")
    )
    assert [one.run_id for one in run.queue or ()] == [run_id(8), run_id(7)]
    assert run.is_steered


def test_a_run_that_nobody_has_claimed_is_over_when_it_is_steered() -> None:
    story = given(*past.a_queued_run()).when(sent.queue("stop that", cause="steer")).after()
    queued, ended = story.events[-2:]
    assert isinstance(queued, MessageQueued)
    assert ended == RunEnded(outcome="stopped", reason="steered")


def test_a_claimed_run_is_not_started_any_more_once_it_is_steered() -> None:
    claimed = (*past.a_queued_run(), past.claimed(), STEER)
    with pytest.raises(Exception, match="steered by admin before it started"):
        given(*claimed).when(ask.start(run_of(*claimed).epoch)).after()


@pytest.mark.parametrize(
    ("by", "after_ms", "taken"), [("admin", 1999, False), ("admin", 2000, True), ("other", 1, True)]
)
def test_one_caller_steers_once_in_two_seconds(by: str, after_ms: int, *, taken: bool) -> None:
    steered = run_of(*STARTED, STEER)
    assert steered.steered_at is not None
    command = sent.queue(
        by=by, cause="steer", at=steered.steered_at + timedelta(milliseconds=after_ms)
    )
    story = given(*STARTED, STEER).when(command)
    if taken:
        story.after()
    else:
        with pytest.raises(SteeredTooSoon):
            story.after()


@pytest.mark.parametrize("reason", ["exit", "interrupted", "stopped", "timeout"])
def test_one_that_yields_has_ended_its_turn_whatever_becomes_of_its_processes(reason: str) -> None:
    yielded = (*STARTED, sent.yield_requested())
    ended = ended_of(*yielded, outcome="error", reason=reason)
    assert (ended.outcome, ended.reason) == ("success", "yielded")


@pytest.mark.parametrize("reason", ["exit", "interrupted", "stopped"])
def test_one_that_is_steered_has_been_stopped_for_it(reason: str) -> None:
    ended = ended_of(*STARTED, STEER, outcome="error", reason=reason)
    assert (ended.outcome, ended.reason) == ("stopped", "steered")


@pytest.mark.parametrize("before", [sent.yield_requested(), STEER])
def test_a_stop_is_stronger_than_both(before: RunEvent) -> None:
    told = (*STARTED, before, past.stop_requested())
    ended = ended_of(*told, outcome="stopped", reason="stopped")
    assert (ended.outcome, ended.reason) == ("stopped", "stopped")


def test_a_run_yields_once_and_only_at_work_and_for_something() -> None:
    story = given(*STARTED).when(sent.yield_run()).after()
    assert isinstance(story.events[-1], YieldRequested)
    again = given(*STARTED, sent.yield_requested()).when(sent.yield_run(awaits=False)).after()
    assert len(again.events) == len(STARTED) + 1
    with pytest.raises(CannotYield, match="there is nothing to wait for"):
        given(*STARTED).when(sent.yield_run(awaits=False)).after()
    with pytest.raises(CannotYield, match="is not at work"):
        given(*past.a_queued_run()).when(sent.yield_run()).after()


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (YIELDED, None),
        (WOKEN, "continue"),
        ((*YIELDED, sent.message_queued()), "continue"),
        (STEERED, "continue"),
        ((*YIELDED, past.stop_requested()), "announce"),
        ((*WOKEN, sent.continuation_failed()), "announce"),
        ((*past.an_announced_run(), sent.message_queued()), "continue"),
        ((*past.an_announced_run(), sent.message_queued(), sent.messages_dropped()), "archive"),
        ((*past.an_announced_run(), sent.message_queued(), sent.continued()), None),
    ],
)
def test_what_is_to_be_done_next_for_a_run_that_is_over(
    events: tuple[RunEvent, ...], kind: str | None
) -> None:
    assert due(run_of(*events))[0] == kind


@pytest.mark.parametrize("events", [YIELDED, WOKEN, STEERED])
def test_a_run_whose_session_goes_on_in_its_place_is_not_announced(
    events: tuple[RunEvent, ...],
) -> None:
    with pytest.raises(NotYet, match="goes on in its place"):
        given(*events).when(ask.announce()).after()


def test_one_behind_which_a_message_waits_is_not_put_away() -> None:
    with pytest.raises(WrongStage, match="a message waits"):
        given(*past.an_announced_run(), sent.message_queued()).when(ask.archive()).after()


@pytest.mark.parametrize("events", [STARTED, YIELDED, past.an_announced_run()])
def test_a_stop_drops_what_waits(events: tuple[RunEvent, ...]) -> None:
    story = given(*events, sent.message_queued()).when(ask.stop()).after()
    assert MessagesDropped(run_ids=(run_id(7),)) in story.events
    assert story.state is not None
    assert story.state.queue is None


def test_a_second_stop_drops_what_was_sent_since_the_first_one() -> None:
    story = given(*STARTED, past.stop_requested(), sent.message_queued()).when(ask.stop())
    story.then(MessagesDropped(run_ids=(run_id(7),)))


@pytest.mark.parametrize("events", [STARTED, YIELDED, past.an_announced_run()])
def test_one_message_is_dropped_and_others_wait_on(events: tuple[RunEvent, ...]) -> None:
    two = (sent.message_queued(), sent.message_queued(run_id=run_id(8)))
    story = given(*events, *two).when(sent.drop(7))
    story.then(MessagesDropped(run_ids=(run_id(7),)))
    given(*events, *two).when(sent.drop(9)).then()


def test_run_that_was_steered_is_announced_if_the_message_is_dropped() -> None:
    given(*STEERED).when(sent.drop(7)).then(ContinuationFailed(run_id=run_id(7), error=None))
    story = given(*STEERED).when(sent.drop(7)).after()
    assert story.state is not None
    assert (story.state.is_paused, due(story.state)[0]) == (False, "announce")
    another = (*STEERED, sent.message_queued(run_id=run_id(8)))
    given(*another).when(sent.drop(7)).then(MessagesDropped(run_ids=(run_id(7),)))


def test_a_stop_of_one_that_waits_for_its_children_is_its_outcome() -> None:
    run = run_of(*YIELDED, past.stop_requested())
    assert (run.outcome, run.is_paused) == ("stopped", False)


def test_nobody_is_told_of_the_end_of_one_that_is_replaced() -> None:
    hooked = (
        *past.a_prepared_run(),
        past.created(hooks=HOOK_ORDER),
        *(past.queued(), past.claimed(), past.started(), sent.yield_requested()),
        past.ended(reason="yielded"),
        sent.continued(),
        past.announced(disposition="skipped"),
    )
    run = run_of(*hooked)
    assert [one.phase for one in run.effects_of("hook")] == ["due", "passed_on", "passed_on"]
    assert (run.stage, run.archive_at, run.is_replaced) == ("announced", None, True)


def test_a_new_run_has_the_messages_that_wait_still_and_none_of_them_steers_it() -> None:
    waiting = run_of(*STARTED, STEER, sent.message_queued(run_id=run_id(8))).queue
    run = run_of(sent.message_received(cause="steer", queued=waiting))
    assert [(one.run_id, one.cause) for one in run.queue or ()] == [
        (run_id(7), "message"),
        (run_id(8), "message"),
    ]
    assert (run.cause, run.steered_by, run.steered_at) == ("steer", "admin", at(1))


def test_what_could_not_be_gone_on_with_waits_no_more() -> None:
    two = (sent.message_queued(), sent.message_queued(run_id=run_id(8)))
    run: Run = run_of(*past.an_announced_run(), *two, sent.continuation_failed())
    assert [one.run_id for one in run.queue or ()] == [run_id(8)]
    assert run.continuation_failed is None
