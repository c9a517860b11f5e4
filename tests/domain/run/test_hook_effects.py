"""Which hooks are told of a run, and when."""

from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.run.commands import ConfirmEffect, NoteEffectFailure, RunCommand
from domain.run.events import EffectAttempted, EffectEvent, EffectParked, SessionCreated
from domain.run.facts import HOOK_ORDER, Effect, HookName, SpawnOptions, hook_key
from domain.values.refusals import CorruptHistory, NotYet, WrongStage
from tests.support.builders import effects
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.run_histories import PREPARER
from tests.support.builders.storytelling import (
    START,
    AskedRun,
    given,
    ref,
    requested,
    run_id,
    run_of,
)
from tests.support.tiers import examples

pytestmark = pytest.mark.long

# Others are told that a run began and that it ended: each once, from the record.

RAN = (past.claimed(), past.started())
TOLD = past.announced()


def at(position: int) -> datetime:
    return START + timedelta(seconds=position)


def hooks(*events: past.History) -> dict[str, tuple[str, datetime | None]]:
    """How far it has come with each hook after these histories."""
    run = run_of(*(event for history in events for event in history))
    due = [one.due_at for one in run.effects if one.due_at is not None]
    assert run.effects_at == min(due, default=None)
    names = [one.name for one in run.effects]
    assert names == [one for one in HOOK_ORDER if one in names]
    return {one.name: (one.phase, one.due_at) for one in run.effects}


def queued(names: tuple[HookName, ...] = HOOK_ORDER, **options: object) -> past.History:
    """A run in its lane, which these hooks are told of."""
    birth = requested(options=fact_of(SpawnOptions, options))
    return (birth, *past.a_prepared_run()[1:], past.created(hooks=names), past.queued())


def test_the_session_says_which_hooks_are_told_of_its_run() -> None:
    story = given(*past.a_prepared_run()).when(ask.create(PREPARER, hooks=("subagentEnded",)))
    created, _ = story.then(SessionCreated, past.queued()).events[-2:]
    assert isinstance(created, SessionCreated)
    assert created.hooks == ("subagentEnded",)


def test_a_receiver_tells_a_repeat_by_the_key_of_run_and_hook() -> None:
    assert hook_key(run_id(7), "subagentEnded") == f"{run_id(7)}:subagentEnded"


def test_without_hooks_there_is_nothing_to_tell() -> None:
    assert hooks(past.an_archived_run()) == {}
    assert hooks(past.a_created_run()) == {}


def test_of_a_beginning_is_told_once_the_run_stands_in_its_lane() -> None:
    run = queued()
    waiting = ("waiting", None)
    assert hooks(run[:-1]) == dict.fromkeys(HOOK_ORDER, waiting)
    assert hooks(run)["subagentSpawned"] == ("due", at(len(run)))
    assert hooks(queued(("subagentEnded",))) == {"subagentEnded": waiting}


ENDS = [
    # mode, expects, outcome, and behind which event of its end it is told
    ("run", True, "success", "announced"),
    ("run", True, "error", "announced"),
    ("run", True, "timeout", "announced"),
    ("run", True, "stopped", "ended"),
    ("run", False, "success", "ended"),
    ("run", False, "error", "ended"),
    ("run", False, "stopped", "ended"),
    ("session", True, "success", "archived"),
    ("session", False, "error", "archived"),
    ("session", True, "stopped", "ended"),
]


@pytest.mark.parametrize("ran", [RAN, ()], ids=["ran", "never started"])
@pytest.mark.parametrize(("mode", "expects", "outcome", "behind"), ENDS)
def test_of_an_end_is_told_once(
    mode: str, expects: bool, outcome: str, behind: str, ran: past.History
) -> None:
    run = queued(("subagentEnded",), mode=mode, expects_completion_message=expects)
    told: past.History = (*run, *ran)
    is_behind = False
    for name, event in (
        ("ended", past.ended(outcome=outcome)),
        ("announced", TOLD),
        ("archived", past.archived()),
    ):
        told = (*told, event)
        if name == behind:
            due = ("due", at(len(told)))
            is_behind = True
        expected = due if is_behind else ("waiting", None)
        assert hooks(told) == {"subagentEnded": expected}, name


def test_of_an_end_that_was_told_nothing_is_told_again() -> None:
    run = queued(("subagentEnded",), expects_completion_message=False)
    told = (*run, *RAN, past.ended(), effects.hook_told("subagentEnded"))
    assert hooks(told, (TOLD, past.archived())) == {"subagentEnded": ("done", None)}


@pytest.mark.parametrize("outcome", ["stopped", "error"])
def test_where_the_binding_of_a_thread_is_undone_its_undo_is_what_is_told(outcome: str) -> None:
    bound = past.step_begun("thread_binding"), past.step_taken("thread_binding", outcome="bound")
    run = (*past.a_prepared_run(), *bound, past.created(hooks=HOOK_ORDER), past.queued())
    told = (*run, effects.hook_told())
    never_started = (*told, past.ended(outcome=outcome))
    state = run_of(*never_started)
    assert state.effects_at == at(len(never_started))
    # A context engine is told of the end all the same: it is nobody's thread.
    engine = "due" if outcome == "stopped" else "waiting"
    assert [one.phase for one in state.effects_of("hook")] == ["done", "waiting", engine]
    undone = (*never_started, past.step_undone("thread_binding"), TOLD)
    assert [one.phase for one in run_of(*undone).effects_of("hook")] == ["done", "waiting", "due"]
    engine_told = (*undone, effects.hook_told("onSubagentEnded"))
    assert run_of(*engine_told).effects_at is None
    ran = (*told, *RAN, past.ended(outcome=outcome), TOLD)
    assert [one.phase for one in run_of(*ran).effects_of("hook")] == ["done", "due", "due"]


def test_what_is_to_be_undone_and_what_is_to_be_told_are_looked_for_by_one_time() -> None:
    bound = past.step_begun("context_engine"), past.step_taken("context_engine")
    run = (*past.a_prepared_run(), *bound, past.created(hooks=HOOK_ORDER), past.queued())
    failed = (*run, effects.hook_failed(retry_after_seconds=60))
    assert run_of(*failed).effects_at == at(len(failed) + 60)
    ended = (*failed, past.ended(outcome="stopped"))
    assert run_of(*ended).effects_at == at(len(ended))
    undone = (*ended, past.step_undone("context_engine"))
    assert run_of(*undone).effects_at == at(len(failed) + 60)


def test_a_hook_that_took_it_is_told_no_more() -> None:
    story = given(*effects.a_run_with_hooks()).when(ask_told := effects.confirm_hook())
    after = story.then(effects.hook_told())
    after.when(ask_told).then()
    after.when(effects.note_hook_failure()).then()
    after.when(effects.park_hook()).then()


def test_a_hook_that_failed_is_told_again_later_and_later_still() -> None:
    story = given(*effects.a_run_with_hooks())
    waits = []
    for attempt in range(1, 8):
        command = effects.note_hook_failure(attempt=attempt, retry_seconds_max=20)
        story = story.when(command).then(EffectAttempted)
        story.when(command).then()
        (failed,) = story.events[-1:]
        assert isinstance(failed, EffectAttempted)
        assert failed.attempt == attempt
        waits.append(failed.retry_after_seconds or 0)
        assert story.state is not None
        assert story.state.effects_at == at(len(story.events) + waits[-1])
    assert waits == [1, 2, 4, 8, 16, 20, 20]
    story.when(effects.confirm_hook()).then(effects.hook_told(attempt=8))


def last_failure(attempt: int) -> NoteEffectFailure:
    """An attempt after which there is no other."""
    return effects.note_hook_failure(attempt=attempt, attempts_max=attempt)


def test_a_hook_is_parked_by_the_attempt_that_was_its_last_and_by_that_alone() -> None:
    story = (
        given(*effects.a_run_with_hooks()).when(effects.note_hook_failure()).then(EffectAttempted)
    )
    story.when(last_failure(1)).then()
    attempted = effects.hook_failed(attempt=2, retry_after_seconds=None)
    after = story.when(last_failure(2)).then(attempted, effects.hook_parked(attempts=2))
    assert after.state is not None
    assert after.state.effects_at is None
    for command in (effects.confirm_hook(), last_failure(3), effects.park_hook()):
        after.when(command).then()
    parked = effects.hook_parked(attempts=1, reason="not_configured")
    story.when(effects.park_hook()).then(parked)


def test_of_an_end_nobody_is_told_before_the_beginning() -> None:
    run = (*effects.a_run_with_hooks(), effects.hook_failed(retry_after_seconds=60))
    story = given(*run, past.ended(outcome="stopped"))
    assert story.state is not None
    assert {one.due_at for one in story.state.effects} == {at(len(run) + 60)}
    ended: HookName = "subagentEnded"
    for command in (
        effects.confirm_hook(ended),
        effects.note_hook_failure(ended),
        effects.park_hook(ended),
    ):
        story.when(command).refused(NotYet, "hook subagentSpawned comes before")
    soon = story.when(effects.note_hook_failure(attempt=2, retry_seconds_max=1)).then(
        EffectAttempted
    )
    assert soon.state is not None
    # The end waits as long as it had to; it may come later than the beginning, but not before it.
    assert soon.state.effects_at == at(len(soon.events) + 1)
    parked = story.when(last_failure(2)).then(EffectAttempted, EffectParked)
    parked.when(effects.confirm_hook(ended)).then(EffectAttempted)


def test_what_is_not_to_be_told_yet_cannot_be_confirmed() -> None:
    story = given(*effects.a_run_with_hooks())
    story.when(effects.confirm_hook("subagentEnded")).refused(NotYet, "not due yet")


def test_a_hook_that_the_run_does_not_have_is_refused_and_its_events_are_corrupt() -> None:
    given(*past.a_queued_run()).when(effects.confirm_hook()).refused(WrongStage)
    events: tuple[EffectEvent, ...] = (
        *(effects.hook_told(), effects.hook_failed()),
        effects.hook_parked(),
    )
    for event in events:
        with pytest.raises(CorruptHistory, match="the run has no hook"):
            run_of(*past.a_queued_run(), event)


# Whatever becomes of a run and of those who tell of it: each hook is told once, or parked.


ATTEMPTS_MAX = 3
HOOKS = st.sampled_from(HOOK_ORDER)
NAMES = st.sets(HOOKS).map(lambda names: tuple(one for one in HOOK_ORDER if one in names))
OPTIONS = st.builds(
    SpawnOptions, mode=st.sampled_from(["run", "session"]), expects_completion_message=st.booleans()
)


class Hooks(AskedRun, RuleBasedStateMachine):
    """Beside a model that knows what the receivers heard, and who is about to note what.

    A teller takes up what is due, tells it, and notes it later or never: it may die in between,
    and others do the same at the same time.
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
        """Somebody tells the first that is due; nothing of it is on record yet."""
        state = next((one for one in self.run.effects_of("hook") if one.phase == "due"), None)
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
        """Whoever was about to note something is gone."""
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
        assert tuple(one.name for one in run.effects_of("hook")) == self.names
        told = [
            event.name
            for event in self.story.events
            if isinstance(event, EffectAttempted) and event.kind == "hook" and not event.has_failed
        ]
        assert len(told) == len(set(told))
        assert set(told) <= self.heard
        assert set(told) == {one.name for one in run.effects_of("hook") if one.phase == "done"}
        for one in run.effects_of("hook"):
            assert (one.phase == "due") == (one.due_at is not None)
            assert one.attempts <= ATTEMPTS_MAX
        times = [one.due_at for one in run.effects_of("hook") if one.due_at is not None]
        assert times == sorted(times)
        undos = [one.due_at for one in run.effects_of("undo") if one.due_at is not None]
        assert run.effects_at == min([*times, *undos], default=None)

    def teardown(self) -> None:
        """Once the run is put away and all that is due was tried, nothing is left to be told; and
        of its end somebody was told, by the hook or by undoing what was made for the run."""
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
        for one in run.effects_of("hook"):
            undo = run.effect("undo", "thread_binding")
            by_undo = one.name == "subagentEnded" and undo is not None and undo.phase == "done"
            assert one.phase in (("waiting",) if by_undo else ("done", "parked"))


TestHooks = Hooks.TestCase
TestHooks.settings = examples(60, stateful_step_count=25)
