"""Effects of a run: hooks and webhooks, their attempts, and failures."""

from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.run.commands import (
    AcknowledgeAnnouncement,
    ConfirmEffect,
    NoteEffectFailure,
    RunCommand,
)
from domain.run.effects import PAUSE_SECONDS_MAX, NothingParked
from domain.run.events import EffectAttempted
from domain.run.facts import HOOK_ORDER, Effect, HookName, SpawnOptions
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.storytelling import (
    START,
    AskedRun,
    given,
    ref,
    requested,
    run_of,
)
from tests.support.tiers import examples

# Hooks for begin and end of a run: each is called once, from the record.

RAN = (past.claimed(), past.started())

TOLD = past.announced()


def at(position: int) -> datetime:
    return START + timedelta(seconds=position)


def hooks(*events: past.History) -> dict[str, tuple[str, datetime | None]]:
    """Return the phase of each hook after these histories."""
    run = run_of(*(event for history in events for event in history))
    due = [effect.due_at for effect in run.effects if effect.due_at is not None]
    assert run.effects_at == min(due, default=None)
    names = [effect.name for effect in run.effects]
    assert names == [hook for hook in HOOK_ORDER if hook in names]
    return {effect.name: (effect.phase, effect.due_at) for effect in run.effects}


def queued(names: tuple[HookName, ...] = HOOK_ORDER, **options: object) -> past.History:
    """Return a queued run with these hooks."""
    birth = requested(options=fact_of(SpawnOptions, options))
    return (birth, *past.a_prepared_run()[1:], past.created(hooks=names), past.queued())


@pytest.mark.parametrize("outcome", ["stopped", "error"])
def test_undone_thread_binding_replaces_the_end_hook(outcome: str) -> None:
    bound = past.step_begun("thread_binding"), past.step_taken("thread_binding", outcome="bound")
    run = (*past.a_prepared_run(), *bound, past.created(hooks=HOOK_ORDER), past.queued())
    result = (*run, effects.hook_told())
    never_started = (*result, past.ended(outcome=outcome))
    state = run_of(*never_started)
    assert state.effects_at == at(len(never_started))
    # A context engine is still notified of the end, because it needs no thread.
    engine = "due" if outcome == "stopped" else "waiting"
    assert [effect.phase for effect in state.effects_of("hook")] == ["done", "waiting", engine]
    undone = (*never_started, past.step_undone("thread_binding"), TOLD)
    assert [effect.phase for effect in run_of(*undone).effects_of("hook")] == [
        "done",
        "waiting",
        "due",
    ]
    engine_told = (*undone, effects.hook_told("onSubagentEnded"))
    assert run_of(*engine_told).effects_at is None
    ran = (*result, *RAN, past.ended(outcome=outcome), TOLD)
    assert [effect.phase for effect in run_of(*ran).effects_of("hook")] == ["done", "due", "due"]


# For any course of a run and of its servers, each hook is called once or parked.


ATTEMPTS_MAX = 3

HOOKS = st.sampled_from(HOOK_ORDER)

NAMES = st.sets(HOOKS).map(lambda names: tuple(hook for hook in HOOK_ORDER if hook in names))

OPTIONS = st.builds(
    SpawnOptions, mode=st.sampled_from(["run", "session"]), expects_completion_message=st.booleans()
)


class Hooks(AskedRun, RuleBasedStateMachine):
    """State machine with a model of the calls that receivers got, and of the workers about to note
    them.

    A worker takes due work, calls, and notes the result later or never: it may die in between, and
    others may do the same at the same time.
    """

    @initialize(options=OPTIONS, names=NAMES, bound=st.booleans())
    def begin(self, options: SpawnOptions, names: tuple[HookName, ...], bound: bool) -> None:
        birth = requested(options=options)
        steps = past.step_begun("thread_binding"), past.step_taken("thread_binding")
        self.story = given(
            *(birth, *past.a_prepared_run()[1:], *(steps if bound else ())),
            *(past.created(hooks=names), past.queued()),
        )
        self.names = names
        self.tellers: list[tuple[Effect, bool]] = []
        self.heard: set[str] = set()

    @rule()
    def claim(self) -> None:
        self.ask(ask.claim())

    @rule()
    def start(self) -> None:
        self.ask(ask.start(self.run.epoch))

    @rule(outcome=st.sampled_from(["success", "error", "stopped"]))
    def end(self, outcome: str) -> None:
        self.ask(ask.end(self.run.epoch, outcome=outcome))

    @rule()
    def stop(self) -> None:
        self.ask(ask.stop())

    @rule()
    def announce(self) -> None:
        self.ask(ask.announce())

    @rule()
    def archive(self) -> None:
        self.ask(ask.archive())

    @rule()
    def undo(self) -> None:
        self.ask(ask.confirm_undo(step="thread_binding"))

    @rule(takes=st.booleans())
    def tell(self, takes: bool) -> None:
        """Call the first due hook; nothing is recorded yet."""
        state = next(
            (effect for effect in self.run.effects_of("hook") if effect.phase == "due"), None
        )
        if state is not None:
            self.tellers.append((state, takes))
            if takes:
                self.heard.add(state.name)

    @rule(data=st.data())
    def note(self, data: st.DataObject) -> None:
        if not self.tellers:
            return
        which = data.draw(st.integers(0, len(self.tellers) - 1))
        state, took = self.tellers.pop(which)
        self.note_one(state, took)

    def note_one(self, state: Effect, took: bool) -> None:
        attempt = state.attempts + 1
        command: RunCommand = NoteEffectFailure(
            kind="hook",
            name=state.name,
            attempt=attempt,
            error=ref("HTTP 500"),
            attempts_max=ATTEMPTS_MAX,
        )
        if took:
            command = ConfirmEffect(kind="hook", name=state.name, status_code=204)
        before = self.run.effect("hook", state.name)
        assert before is not None
        events = self.ask(command)
        assert events is not None
        settled = before.phase in ("done", "parked")
        assert bool(events) == (not settled and (took or attempt > before.attempts))

    @rule()
    def crash(self) -> None:
        """Lose all workers that are about to note something."""
        self.tellers.clear()

    @rule(hook=HOOKS)
    def nothing_can_be_noted_of_what_is_not_due(self, hook: HookName) -> None:
        state = self.run.effect("hook", hook)
        if state is None or state.phase == "waiting":
            assert self.ask(effects.confirm_hook(hook)) is None
            assert self.ask(effects.note_hook_failure(hook)) is None
            assert self.ask(effects.park_hook(hook)) is None

    @invariant()
    def the_record_is_true(self) -> None:
        if not hasattr(self, "story"):
            return
        run = self.run
        assert tuple(effect.name for effect in run.effects_of("hook")) == self.names
        names = [
            event.name
            for event in self.story.events
            if isinstance(event, EffectAttempted) and event.kind == "hook" and not event.has_failed
        ]
        assert len(names) == len(set(names))
        assert set(names) <= self.heard
        assert set(names) == {
            effect.name for effect in run.effects_of("hook") if effect.phase == "done"
        }
        for item in run.effects_of("hook"):
            assert (item.phase == "due") == (item.due_at is not None)
            assert item.attempts <= ATTEMPTS_MAX
        times = [effect.due_at for effect in run.effects_of("hook") if effect.due_at is not None]
        assert times == sorted(times)
        undos = [effect.due_at for effect in run.effects_of("undo") if effect.due_at is not None]
        assert run.effects_at == min([*times, *undos], default=None)

    def teardown(self) -> None:
        """Assert that, once the run is archived and all due work was tried, no hook is due, and
        that its end was reported to a hook or by undoing its steps.
        """
        if not hasattr(self, "story"):
            return
        for command in (ask.stop(), ask.end(self.run.epoch, outcome="success")):
            self.ask(command)
        self.announce()
        self.archive()
        assert self.run.stage == "archived"
        self.undo()
        for _ in range(ATTEMPTS_MAX * len(HOOK_ORDER)):
            self.tell(takes=False)
            for state, took in self.tellers:
                self.note_one(state, took)
            self.tellers.clear()
        run = self.run
        assert run.effects_at is None
        for effect in run.effects_of("hook"):
            undo = run.effect("undo", "thread_binding")
            by_undo = effect.name == "subagentEnded" and undo is not None and undo.phase == "done"
            assert effect.phase in (("waiting",) if by_undo else ("done", "parked"))


TestHooks = pytest.mark.long(Hooks.TestCase)

TestHooks.settings = examples(60, stateful_step_count=25)


def test_refused_spawn_of_absent_caller_is_sent() -> None:
    run = run_of(*past.a_resolved_run(), past.refused_and_told(webhooks=("gateway",)))
    assert run.effects_at is not None


def pauses(failures: int, **changes: object) -> list[int]:
    """Return the backoff after each of these failures."""
    story = given(*effects.an_announced_run())
    for attempt in range(1, failures + 1):
        story = story.when(effects.failed(attempt=attempt, attempts_max=99, **changes)).after()
    return [
        event.retry_after_seconds or 0
        for event in story.events
        if isinstance(event, EffectAttempted)
    ]


def test_pauses_double_with_jitter_up_to_a_limit() -> None:
    waited = pauses(16)
    for number, pause in enumerate(waited):
        longest = min(2 ** min(number, 12), 3600)
        assert max(1, longest // 2) <= pause <= longest
    assert waited[-1] <= 3600


@pytest.mark.parametrize(
    ("requested", "pause"), [(0, 1), (600, 600), (10**8, PAUSE_SECONDS_MAX)], ids=str
)
def test_requested_pause_is_a_day_at_most(requested: int, pause: int) -> None:
    assert pauses(1, pause_seconds=requested) == [pause]


def test_permanent_failure_parks_the_webhook() -> None:
    story = (
        given(*effects.an_announced_run())
        .when(effects.failed(status_code=410, refused=True))
        .after()
    )
    assert story.events[-1] == effects.parked(attempts=1, reason="refused")


def test_acknowledgement_before_parking_does_not_cover_it() -> None:
    story = given(*effects.an_announced_run(), effects.attempted(), effects.parked())
    run = story.state
    assert run is not None
    assert run.inbox is not None
    read_at = run.inbox.announced_position
    story.when(AcknowledgeAnnouncement(by="main", position=read_at)).then()
    again = AcknowledgeAnnouncement(by="main", position=run.inbox.position)
    after = story.when(again).after()
    assert after.state is not None
    assert after.state.inbox is not None
    assert after.state.inbox.acknowledged_at is not None


def test_parked_webhook_keeps_its_reason_until_redriven() -> None:
    story = given(*effects.an_announced_run()).when(effects.park()).after()
    again = story.when(effects.redrive()).after()
    states = (story.state, again.state)
    reasons = [effect.reason for run in states if run for effect in run.effects]
    assert reasons == ["not_configured", None]


def test_redriven_webhook_has_all_attempts_again() -> None:
    story = given(*effects.an_announced_run(), effects.attempted(), effects.parked())
    with pytest.raises(NothingParked, match="no parked delivery to webhook ops"):
        story.when(effects.redrive("ops")).after()
    again = story.when(effects.redrive()).then(effects.redriven())
    assert again.state is not None
    assert again.state.effects_at is not None
    once = again.when(effects.failed(attempt=2, attempts_max=2)).after()
    assert isinstance(once.events[-1], EffectAttempted)
    twice = once.when(effects.failed(attempt=3, attempts_max=2)).after()
    assert twice.events[-1] == effects.parked(attempts=3)
    with pytest.raises(NothingParked):
        given(*effects.an_announced_run()).when(effects.redrive()).after()


def test_webhook_that_is_gone_is_no_attempt() -> None:
    story = given(*effects.an_announced_run()).when(effects.park())
    after = story.then(effects.parked(attempts=0, reason="not_configured"))
    after.when(effects.park()).then()
