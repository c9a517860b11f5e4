"""Whatever a preparation comes to, in whatever order: the record says what is left to be unmade."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.run.facts import STEP_ORDER, StepName
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.run_story import AskedRun
from tests.support.builders.storytelling import given
from tests.support.tiers import examples

pytestmark = pytest.mark.long

STEPS = st.sampled_from(STEP_ORDER)
OPEN = ("making", "made")


class Steps(AskedRun, RuleBasedStateMachine):
    """Beside a model that knows nothing but sets: what was made, what is being made, what is left.

    `outside` is what stands outside the log: it is changed where a maker would, before its record.
    """

    @initialize()
    def begin(self) -> None:
        self.story = given(*past.a_prepared_run())
        self.stage = "preparing"
        self.outside: set[StepName] = set()
        self.begun: list[StepName] = []
        self.taken: set[StepName] = set()
        self.undone: set[StepName] = set()
        self.holds = True

    @property
    def at(self) -> StepName | None:
        """The step under way."""
        return next((one for one in self.begun if one not in self.taken), None)

    @rule(step=STEPS)
    def begin_step(self, step: StepName) -> None:
        fits = self.stage == "preparing" and (
            self.at == step
            or (self.at is None and all(_place(one) < _place(step) for one in self.begun))
        )
        events = self.ask(ask.begin_step(self.run.epoch, step=step))
        assert (events is not None) == fits
        if not fits:
            return
        # What is begun may be made from now on, known or not.
        self.outside.add(step)
        if step in self.begun:
            assert bool(events) != self.holds
        else:
            assert events
            self.begun.append(step)
        self.holds = True

    @rule(step=STEPS)
    def take(self, step: StepName) -> None:
        events = self.ask(ask.take_step(self.run.epoch, step=step))
        if self.stage == "preparing" and self.at == step and self.holds:
            assert events
            self.taken.add(step)
        else:
            assert not events

    @precondition(lambda self: self.stage == "preparing")
    @rule()
    def crash(self) -> None:
        assert self.ask(ask.resume(self.run.epoch))
        # The step under way is not this holder's before it is begun again.
        self.holds = self.at is None

    @rule(stopped=st.booleans())
    def refuse(self, stopped: bool) -> None:
        command = ask.stop() if stopped else ask.refuse(self.run.epoch, step=self.at or "x")
        if self.stage == "preparing":
            assert self.ask(command)
            self.stage = "refused"
        elif not stopped:
            assert self.ask(command) is None

    @precondition(lambda self: self.stage == "preparing" and len(self.begun) > 2)
    @rule()
    def create(self) -> None:
        events = self.ask(ask.create(self.run.epoch))
        assert bool(events) == (self.at is None)
        if events:
            self.stage = "created"

    @property
    def left(self) -> list[StepName]:
        """What is to be undone, the next one first."""
        if self.stage != "refused":
            return []
        return [one for one in reversed(self.begun) if one not in self.undone]

    @rule(step=STEPS)
    def undo(self, step: StepName) -> None:
        events = self.ask(ask.confirm_undo(step))
        if self.left[:1] == [step]:
            assert events
            self.outside.discard(step)
            self.undone.add(step)
        else:
            assert not events

    @rule(step=STEPS, late=st.booleans())
    def fail_to_undo(self, step: StepName, late: bool) -> None:
        undo = self.run.effect("undo", step)
        failures = undo.attempts if undo else 0
        events = self.ask(ask.note_undo_failure(step=step, attempt=failures + (not late)))
        assert bool(events) == (self.left[:1] == [step] and not late)

    @invariant()
    def the_record_and_the_sets_agree(self) -> None:
        if not hasattr(self, "story"):
            return
        steps = self.run.steps
        assert [one.name for one in steps] == self.begun
        undos = self.run.effects
        assert {one.name for one in undos if one.phase == "done"} == self.undone
        assert [one.name for one in undos if one.due_at] == self.left
        assert (self.run.effects_at is not None) == bool(self.left)
        assert self.outside <= set(self.begun) - self.undone
        due = [one.due_at for one in undos if one.due_at]
        assert due == sorted(due)

    def teardown(self) -> None:
        """Nothing that was begun is left, once all that is due is confirmed."""
        if not hasattr(self, "story") or self.stage != "refused":
            return
        for step in self.left:
            self.undo(step)
        assert not self.outside
        assert self.run.effects_at is None
        assert [one.name for one in self.run.effects] == self.begun[::-1]


def _place(step: StepName) -> int:
    return STEP_ORDER.index(step)


TestSteps = Steps.TestCase
TestSteps.settings = examples(60, stateful_step_count=30)
