"""The preparation of a run that is under way, and the refusal that may come of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from domain.run.commands import RunCommand
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.values import rules
from domain.values.refusals import ERASED, Refusal

CallerPresence = Callable[[], bool]
CommandList = tuple[RunCommand, ...]


def no_caller() -> bool:
    """For preparations that go on after a crash: no caller waits for them."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A run that cannot be prepared: `before` is to be recorded in front of the refusal.

    `step` is where it failed, `facts` as much as had been looked at of what a plan is decided from.
    `keeper` is None when the texts of its session were erased: nothing may be kept of it.
    """

    run: Run
    refusal: Refusal
    caller_is_there: CallerPresence
    text_store: TextStore | None = None
    facts: PlanFacts | None = None
    before: CommandList = ()
    step: str = "preparation"


@dataclass(frozen=True, slots=True)
class Preparation:
    """The run as it is on record, and all that the next decision about it needs.

    `workspace` is the folder that was asked for, `keeper` takes the texts of the next append,
    `before` is what is to be recorded in front of it.
    """

    run: Run
    task: str
    workspace: str | None
    pinned: PinnedConfiguration
    text_store: TextStore
    caller_is_there: CallerPresence
    before: CommandList = ()

    def recorded(self, run: Run) -> "Preparation":
        """It goes on after an append, with the run as it is then."""
        return replace(self, run=run, text_store=self.text_store.empty_copy(), before=())

    def refuse(
        self, refusal: Refusal, facts: PlanFacts | None = None, step: str = "preparation"
    ) -> Refused:
        """The end of it: a rule or a step speaks against the run."""
        return Refused(
            run=self.run,
            refusal=refusal,
            caller_is_there=self.caller_is_there,
            text_store=self.text_store,
            facts=facts,
            before=self.before,
            step=step,
        )


def refuse_erased(run: Run, caller_is_there: CallerPresence) -> Refused:
    """The refusal of a run of whose session nothing may be kept any more: what was not recorded
    yet is not."""
    refusal, step = rules.ERASED.refusal(ERASED), rules.ERASED.name
    return Refused(run=run, refusal=refusal, caller_is_there=caller_is_there, step=step)
