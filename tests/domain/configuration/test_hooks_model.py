"""Whatever becomes of a run and of those who tell of it: each hook is told once, or parked."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from domain.run.commands import ConfirmEffect, NoteEffectFailure, RunCommand
from domain.run.events import EffectAttempted
from domain.run.facts import HOOK_ORDER, Effect, HookName, SpawnOptions
from tests.support.builders import hooked_runs as hooked
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.run_story import AskedRun
from tests.support.builders.storytelling import given, ref, requested
from tests.support.tiers import examples

pytestmark = pytest.mark.long

ATTEMPTS_MAX = 3
HOOKS = st.sampled_from(HOOK_ORDER)
NAMES = st.sets(HOOKS).map(lambda names: tuple(one for one in HOOK_ORDER if one in names))
OPTIONS = st.builds(
    SpawnOptions,
    mode=st.sampled_from(["run", "session"]),
    expects_completion_message=st.booleans(),
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
            assert self.ask(hooked.confirm_hook(hook)) is None
            assert self.ask(hooked.note_hook_failure(hook)) is None
            assert self.ask(hooked.park_hook(hook)) is None

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
