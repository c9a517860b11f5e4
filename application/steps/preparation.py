"""The preparation of a run that is under way, and the refusal that may come of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from application.log.texts import TextStore
from application.ports.configurations import PinnedConfiguration
from domain.configuration.configuration import EffectiveAgent
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
    `text_store` is None when the texts of its session were erased: nothing may be kept of it.
    """

    run: Run
    refusal: Refusal
    caller_is_there: CallerPresence
    text_store: TextStore | None = None
    facts: PlanFacts | None = None
    before: CommandList = ()
    step: str = "preparation"


class Preparation(NamedTuple):
    """The run as it is on record, and all that the next decision about it needs.

    `agent` is the one that will run, as far as that is known. `workspace` is the folder that was
    asked for, `preamble` what its parent wants in front of the prompt, `text_store` takes the texts
    of the next append, `before` is what is to be recorded in front of it.
    """

    run: Run
    task: str
    workspace: str | None
    preamble: str | None
    pinned: PinnedConfiguration
    agent: EffectiveAgent
    text_store: TextStore
    caller_is_there: CallerPresence
    before: CommandList = ()

    def recorded(self, run: Run) -> "Preparation":
        """It goes on after an append, with the run as it is then."""
        agent = self.agent
        if run.agent_id is not None and run.agent_id != self.run.agent_id:
            agent = self.pinned.configuration.effective_agent(run.agent_id)
        return self._replace(
            run=run, agent=agent, text_store=self.text_store.empty_copy(), before=()
        )

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
