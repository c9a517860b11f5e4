"""A run that continues a session."""

from datetime import datetime, timedelta

import pytest

from application.delivery.announce import disposition_of
from application.projections.run_rows import due
from domain.run.continuation import (
    QUEUED_MESSAGES_MAX,
    STEER_CHARACTERS_MAX,
    CannotYield,
    QueueFull,
    SteeredTooSoon,
    SteerTooLong,
    require_steerable,
)
from domain.run.decide import dedupe_key
from domain.run.events import (
    ContinuationFailed,
    MessageQueued,
    MessagesDropped,
    RunEnded,
    RunEvent,
    YieldRequested,
)
from domain.run.evolve import initial_run
from domain.run.facts import HOOK_ORDER, HookName, SpawnOptions
from domain.run.state import Run
from domain.values.refusals import CorruptHistoryError, NotYet, WrongStage
from tests.support.builders import continued_runs as continued
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import (
    CHILD,
    at,
    given,
    plan,
    ref,
    requested,
    requester,
    run_id,
    run_of,
    stamp,
)

# A run that continues a session: its first events, announcement and archive.

ENDED: HookName = "subagentEnded"
SESSION = SpawnOptions(mode="session")


def first(
    options: SpawnOptions,
    *,
    ran: bool = True,
    outcome: str = "success",
    hooks: tuple[HookName, ...] = ("subagentSpawned", ENDED),
) -> past.History:
    """Return the first run of a session with hooks, up to its announcement."""
    return (
        requested(options=options),
        *past.a_prepared_run()[1:],
        past.created(hooks=hooks),
        past.queued(),
        effects.hook_told(),
        *((past.claimed(), past.started()) if ran else ()),
        past.ended(outcome=outcome),
        past.announced(),
    )


def next_one(options: SpawnOptions, outcome: str = "success", **plan: object) -> past.History:
    """Return a run that continues the session, up to its announcement."""
    return (
        continued.message_received(options=options),
        continued.planned(hooks=(ENDED,), **plan),
        *(past.queued(), past.claimed(), past.started()),
        *(past.ended(outcome=outcome), past.announced()),
    )


def told(*events: RunEvent) -> tuple[str, datetime | None]:
    """Return the phase of the end hook."""
    run = run_of(*events)
    state = run.effect("hook", ENDED)
    assert state is not None
    assert run.effects_at == state.due_at
    return state.phase, state.due_at


def due_at(*events: RunEvent) -> tuple[str, datetime]:
    """Due since the last of these."""
    return "due", stamp(len(events)).recorded_at


def test_message_is_the_beginning_of_a_run() -> None:
    request = requester(depth=1, run_id=run_id(7), spawned_by="agent:main:main")
    event = continued.message_received(
        requester=request,
        depth=2,
        agent_id="steward",
        label="words",
        thread=True,
        context_mode="fork",
        model_argument=ref("model"),
        thinking_argument=ref("thinking"),
        delivery_origin=ref("origin"),
        options=SESSION,
        config_revision=9,
        opened_by=run_id(5),
        continues=run_id(6),
    )
    run = initial_run(event, stamp(12, 1))
    assert (run.stage, run.version, run.created_position) == ("requested", 1, 12)
    assert (run.created_at, run.epoch, run.holder) == (stamp(12).recorded_at, 1, None)
    assert (run.run_id, run.session_id, run.child_session_key) == (run_id(2), run_id(1001), CHILD)
    assert (run.requester, run.depth, run.label) == (request, 2, "words")
    assert (run.agent_id, run.requested_agent_id) == ("steward", "steward")
    assert (run.task, run.options, run.config_revision) == (ref("and then?"), SESSION, 9)
    assert (run.model_argument, run.thinking_argument) == (ref("model"), ref("thinking"))
    assert (run.thread, run.context_mode) == (True, "fork")
    assert (run.delivery_origin, run.continues, run.opened_by) == (
        ref("origin"),
        run_id(6),
        run_id(5),
    )
    assert (run.continued_by, run.put_away_from, run.steps, run.effects) == (
        None,
        None,
        (),
        (),
    )
    assert dedupe_key(run) == f"announce:v1:{CHILD}:{run_id(2)}"


@pytest.mark.parametrize("event", [past.created(), continued.planned(), continued.continued()])
def test_no_run_begins_with_anything_else(event: RunEvent) -> None:
    with pytest.raises(CorruptHistoryError, match="no run begins with"):
        initial_run(event, stamp(1))


@pytest.mark.parametrize("expects", [True, False])
@pytest.mark.parametrize("delivers", [True, False])
def test_directly_delivered_result_is_not_announced(expects: bool, delivers: bool) -> None:
    options = SpawnOptions(mode="session", expects_completion_message=expects)
    spawned: Run = run_of(
        requested(options=options),
        *past.a_prepared_run()[1:],
        past.created(direct_delivery=delivers),
    )
    message = (
        continued.message_received(options=options),
        continued.planned(direct_delivery=delivers),
    )
    for each in (spawned, run_of(*message)):
        run = each.changed({"started_at": each.created_at})
        assert bool(run.direct_delivery) == delivers
        assert run.expects_completion == (expects and not delivers)
        wanted = "inbox" if expects and not delivers else "not_required"
        assert disposition_of(run)[0] == wanted
        assert disposition_of(run.changed({"outcome": "error"}))[0] == wanted
        # A run that never started delivers nothing.
        in_vain = run.changed({"outcome": "error", "started_at": None})
        assert disposition_of(in_vain)[0] == ("inbox" if expects else "not_required")


def test_each_run_of_mode_run_has_its_own_end_hook() -> None:
    run = first(SpawnOptions())
    assert told(*run) == due_at(*run)
    assert told(*run, continued.continued()) == due_at(*run)
    once = (*run, effects.hook_told(ENDED), continued.continued())
    assert told(*once) == ("done", None)
    assert told(*once, continued.scheduled(), past.archived()) == ("done", None)
    two = next_one(SpawnOptions())
    assert told(*two) == due_at(*two)
    silent = next_one(SpawnOptions(expects_completion_message=False))
    assert told(*silent) == due_at(*silent[:-1])


def test_pending_spawned_hook_survives_continuation() -> None:
    first_run = first(SESSION, hooks=HOOK_ORDER)
    told_of = first_run.index(effects.hook_told())
    late = (*first_run[:told_of], *first_run[told_of + 1 :], continued.continued())
    run = run_of(*late)
    assert [hook.phase for hook in run.effects] == ["due", "passed_on", "passed_on"]
    given(*late).when(effects.confirm_hook()).then(effects.hook_told())


def test_passed_on_hook_cannot_be_told() -> None:
    story = given(*first(SESSION), continued.continued())
    for command in (
        effects.confirm_hook(ENDED),
        effects.note_hook_failure(ENDED),
        effects.park_hook(ENDED),
    ):
        story.when(command).refused(WrongStage, "continued by another run, which does it")


@pytest.mark.parametrize(
    ("hours", "after_hours"),
    [
        ({}, None),
        ({"idle_hours": 2.0}, 2.0),
        ({"max_age_hours": 1.0}, 1.0),
        ({"idle_hours": 2.0, "max_age_hours": 5.0}, 2.0),
    ],
)
def test_lasting_session_is_archived_after_its_hours(
    hours: dict[str, float], after_hours: float | None
) -> None:
    story = (
        *past.a_prepared_run(),
        past.created(plan=plan(**hours)),
        *(past.queued(), past.claimed(), past.started(), past.ended(), past.announced()),
    )
    run = run_of(requested(options=SESSION), *story[1:])
    assert run.announced_at is not None
    began = run.created_at if "idle_hours" not in hours else run.announced_at
    due = began + timedelta(hours=after_hours) if after_hours is not None else None
    assert run.archive_at == due


def test_later_run_is_as_old_as_its_session() -> None:
    opened_at = at(1) - timedelta(hours=10)
    story = (
        continued.message_received(options=SESSION, opened_at=opened_at),
        continued.planned(plan=plan(max_age_hours=3.0)),
        *(past.queued(), past.claimed(), past.started(), past.ended(), past.announced()),
    )
    run = run_of(*story)
    # The session had a running run when archiving was due.
    assert run.archive_at == run.announced_at


# Continuation of a session after a run: queued messages, yields and steering.

STARTED = past.a_started_run()
YIELDED = (*STARTED, continued.yield_requested(), past.ended(reason="yielded"))
STEER = continued.message_queued("stop that", cause="steer")
STEERED = (*STARTED, STEER, past.ended(outcome="stopped", reason="steered"))
WOKEN = (*YIELDED, continued.children_reported(3))


def ended_of(*events: RunEvent, **changes: object) -> RunEnded:
    """Return the end of the run for such an end of its runtime."""
    run = run_of(*events)
    after = given(*events).when(ask.end(run.epoch, **changes)).after()
    ended = after.events[-1]
    assert isinstance(ended, RunEnded)
    return ended


def test_message_waits_behind_those_that_wait() -> None:
    first = given(*STARTED).when(continued.queue("one")).after().events
    run = given(*first).when(continued.queue("two", run_id=run_id(8))).after().state
    assert run is not None
    assert [(run.run_id, run.message, run.by) for run in run.queue or ()] == [
        (run_id(7), ref("one"), "admin"),
        (run_id(8), ref("two"), "admin"),
    ]


def test_there_is_room_for_twenty_messages() -> None:
    waiting = tuple(
        continued.message_queued(run_id=run_id(20 + n)) for n in range(QUEUED_MESSAGES_MAX)
    )
    with pytest.raises(QueueFull, match="20 messages are already queued for this session"):
        given(*STARTED, *waiting).when(continued.queue()).after()


def test_steering_message_precedes_queued_ones() -> None:
    run = run_of(
        *STARTED,
        continued.message_queued(),
        continued.message_queued(run_id=run_id(8), cause="steer"),
    )
    assert [run.run_id for run in run.queue or ()] == [run_id(8), run_id(7)]
    assert run.is_steered


def test_steered_unclaimed_run_ends() -> None:
    story = given(*past.a_queued_run()).when(continued.queue("stop that", cause="steer")).after()
    queued, ended = story.events[-2:]
    assert isinstance(queued, MessageQueued)
    assert ended == RunEnded(outcome="stopped", reason="steered")


def test_steered_claimed_run_is_not_started() -> None:
    claimed = (*past.a_queued_run(), past.claimed(), STEER)
    with pytest.raises(Exception, match="steered by admin before it started"):
        given(*claimed).when(ask.start(run_of(*claimed).epoch)).after()


@pytest.mark.parametrize(
    ("by", "after_ms", "taken"), [("admin", 1999, False), ("admin", 2000, True), ("other", 1, True)]
)
def test_one_caller_steers_once_in_two_seconds(by: str, after_ms: int, *, taken: bool) -> None:
    steered = run_of(*STARTED, STEER)
    assert steered.steered_at is not None
    command = continued.queue(
        by=by, cause="steer", at=steered.steered_at + timedelta(milliseconds=after_ms)
    )
    story = given(*STARTED, STEER).when(command)
    if taken:
        story.after()
    else:
        with pytest.raises(SteeredTooSoon):
            story.after()


def test_message_that_steers_has_a_limit() -> None:
    require_steerable("x" * STEER_CHARACTERS_MAX)
    with pytest.raises(SteerTooLong, match=f"{STEER_CHARACTERS_MAX + 1} chars"):
        require_steerable("x" * (STEER_CHARACTERS_MAX + 1))


@pytest.mark.parametrize("reason", ["exit", "interrupted", "stopped"])
def test_steered_run_ends_as_stopped(reason: str) -> None:
    ended = ended_of(*STARTED, STEER, outcome="error", reason=reason)
    assert (ended.outcome, ended.reason) == ("stopped", "steered")


def test_run_yields_once_while_children_work() -> None:
    story = given(*STARTED).when(continued.yield_run()).after()
    assert isinstance(story.events[-1], YieldRequested)
    again = (
        given(*STARTED, continued.yield_requested()).when(continued.yield_run(awaits=False)).after()
    )
    assert len(again.events) == len(STARTED) + 1
    with pytest.raises(CannotYield, match="nothing to wait for"):
        given(*STARTED).when(continued.yield_run(awaits=False)).after()
    with pytest.raises(CannotYield, match="has not started or is over"):
        given(*past.a_queued_run()).when(continued.yield_run()).after()


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (YIELDED, None),
        (WOKEN, "continue"),
        ((*YIELDED, continued.message_queued()), "continue"),
        (STEERED, "continue"),
        ((*YIELDED, past.stop_requested()), "announce"),
        ((*WOKEN, continued.continuation_failed()), "announce"),
        ((*past.an_announced_run(), continued.message_queued()), "continue"),
        ((*past.an_announced_run(), continued.message_queued(), continued.continued()), None),
    ],
)
def test_next_step_of_ended_run(events: tuple[RunEvent, ...], kind: str | None) -> None:
    assert due(run_of(*events))[0] == kind


@pytest.mark.parametrize("events", [YIELDED, WOKEN, STEERED])
def test_run_replaced_by_its_session_is_not_announced(
    events: tuple[RunEvent, ...],
) -> None:
    with pytest.raises(NotYet, match="will continue its session"):
        given(*events).when(ask.announce()).after()


def test_run_with_queued_message_is_not_archived() -> None:
    with pytest.raises(WrongStage, match="a queued message"):
        given(*past.an_announced_run(), continued.message_queued()).when(ask.archive()).after()


@pytest.mark.parametrize("events", [STARTED, YIELDED, past.an_announced_run()])
def test_stop_drops_what_waits(events: tuple[RunEvent, ...]) -> None:
    story = given(*events, continued.message_queued()).when(ask.stop()).after()
    assert MessagesDropped(run_ids=(run_id(7),)) in story.events
    assert story.state is not None
    assert story.state.queue is None


@pytest.mark.parametrize("events", [STARTED, YIELDED, past.an_announced_run()])
def test_one_message_is_dropped_and_others_wait_on(events: tuple[RunEvent, ...]) -> None:
    two = (continued.message_queued(), continued.message_queued(run_id=run_id(8)))
    story = given(*events, *two).when(continued.drop(7))
    story.then(MessagesDropped(run_ids=(run_id(7),)))
    given(*events, *two).when(continued.drop(9)).then()


def test_steered_run_is_announced_if_message_is_dropped() -> None:
    given(*STEERED).when(continued.drop(7)).then(ContinuationFailed(run_id=run_id(7), error=None))
    story = given(*STEERED).when(continued.drop(7)).after()
    assert story.state is not None
    assert (story.state.is_paused, due(story.state)[0]) == (False, "announce")
    another = (*STEERED, continued.message_queued(run_id=run_id(8)))
    given(*another).when(continued.drop(7)).then(MessagesDropped(run_ids=(run_id(7),)))


def test_stopped_yielded_run_has_outcome_stopped() -> None:
    run = run_of(*YIELDED, past.stop_requested())
    assert (run.outcome, run.is_paused) == ("stopped", False)


def test_replaced_run_has_no_end_hook() -> None:
    history = (
        *past.a_prepared_run(),
        past.created(hooks=HOOK_ORDER),
        *(past.queued(), past.claimed(), past.started(), continued.yield_requested()),
        past.ended(reason="yielded"),
        continued.continued(),
        past.announced(disposition="skipped"),
    )
    run = run_of(*history)
    assert [effect.phase for effect in run.effects_of("hook")] == ["due", "passed_on", "passed_on"]
    assert (run.stage, run.archive_at, run.is_replaced) == ("announced", None, True)


def test_new_run_inherits_queued_messages_without_steering() -> None:
    waiting = run_of(*STARTED, STEER, continued.message_queued(run_id=run_id(8))).queue
    run = run_of(continued.message_received(cause="steer", queued=waiting))
    assert [(run.run_id, run.cause) for run in run.queue or ()] == [
        (run_id(7), "message"),
        (run_id(8), "message"),
    ]
    assert (run.cause, run.steered_by, run.steered_at) == ("steer", "admin", at(1))
