"""What comes of a preparation."""

from dataclasses import dataclass

from application.log.answers import ResponseBody
from application.steps.preparation import CallerPresence, Preparation
from application.steps.run_steps import StepsTaken
from domain.run.commands import CreateSession, RunCommand
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.values.refusals import Refusal


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is in its lane or refused, and the position of the append that brought it there;
    None when others did."""

    run: Run
    position: int | None


# How far a preparation has come before its last append: all is made, or it cannot be.


@dataclass(frozen=True, slots=True)
class Ready:
    """All is made: `create` is to be recorded behind what `stepped` has to record before, and
    `told` is what the caller is told of the child then."""

    stepped: StepsTaken
    create: CreateSession
    told: ResponseBody

    @property
    def preparation(self) -> Preparation:
        """The run as it is on record."""
        return self.stepped.preparation

    @property
    def before(self) -> tuple[RunCommand, ...]:
        """What is to be recorded in front."""
        return self.stepped.before


@dataclass(frozen=True, slots=True)
class NotReady:
    """It cannot be prepared: `before` is to be recorded in front of the refusal. `step` is where
    it failed, `facts` as much as had been looked at of what a plan is decided from."""

    preparation: Preparation
    refusal: Refusal
    facts: PlanFacts | None
    before: tuple[RunCommand, ...]
    step: str = "preparation"


@dataclass(frozen=True, slots=True)
class Erased:
    """It cannot be prepared any more: the texts of its session were erased. What was not recorded
    yet is not, for nothing may be kept of it."""

    run: Run
    caller_is_there: CallerPresence


def revoke_ready(ready: Ready, refusal: Refusal) -> NotReady:
    """All was made, and then the record had changed."""
    return NotReady(ready.preparation, refusal, ready.create.facts, ready.before)
