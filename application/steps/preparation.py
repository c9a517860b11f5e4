"""State of a run's preparation, and its possible refusal."""

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
    """Return False: no caller waits for a preparation resumed after a crash."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A run whose preparation failed.

    Attributes:
        text_store: None if its session's texts were erased, so that none may be stored.
        facts: Facts of the plan known so far.
        before: Commands to record before the refusal.
        step: Where it failed.
    """

    run: Run
    refusal: Refusal
    caller_is_there: CallerPresence
    text_store: TextStore | None = None
    facts: PlanFacts | None = None
    before: CommandList = ()
    step: str = "preparation"


class Preparation(NamedTuple):
    """The recorded run, and everything that the next decision about it needs.

    Attributes:
        workspace: The folder that the request names.
        preamble: The parent's preamble.
        agent: The agent that will run, as far as known.
        text_store: Takes the texts of the next append.
        before: Commands to record first in the next append.
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
        """Return the preparation after an append, with the new state of the run."""
        agent = self.agent
        if run.agent_id is not None and run.agent_id != self.run.agent_id:
            agent = self.pinned.configuration.effective_agent(run.agent_id)
        return self._replace(
            run=run, agent=agent, text_store=self.text_store.empty_copy(), before=()
        )

    def refuse(
        self, refusal: Refusal, facts: PlanFacts | None = None, step: str = "preparation"
    ) -> Refused:
        """Return a refusal of the run by a rule or a step."""
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
    """Return the refusal of a run whose session was erased. Commands not yet recorded are
    dropped."""
    refusal, step = rules.ERASED.refusal(ERASED), rules.ERASED.name
    return Refused(run=run, refusal=refusal, caller_is_there=caller_is_there, step=step)
