"""Recorded decision of a spawn or a message, as input for explanations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar
from uuid import UUID

from pydantic import JsonValue

from domain.event_types import AnyEvent
from domain.run.events import (
    AgentOverridden,
    DependencyMet,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
    StepBegun,
    StepTaken,
)
from domain.run.facts import StepName
from domain.session.events import ChildAdmitted
from domain.values.record import Event, Fact
from domain.values.rules import Rule, RuleFinding
from domain.values.text import quote_name

RuleResult = Literal["passed", "refused", "not_judged", "not_recorded"]
"""Result of a rule.

- `passed`: the rule did not refuse.
- `refused`: the rule refused.
- `not_judged`: the decision did not get that far.
- `not_recorded`: the release that decided did not record the compared values.
"""


class RuleExplanation(Fact):
    """Explanation of one rule of a decision.

    Attributes:
        step: Step of the decision.
        rule: Name of the rule.
        result: Result of the rule.
        compared: Values that were compared; None if there are none, or they are not recorded.
        text: The comparison in words.
        position: Log position of the recording event; None if there is none.
        config_revision: Configuration revision that the rule was decided under.
    """

    step: str
    rule: str
    result: RuleResult
    compared: dict[str, JsonValue] | None = None
    text: str
    position: int | None
    config_revision: int


DECIDING = (
    SpawnRequested,
    ChildAdmitted,
    ScriptsResolved,
    AgentOverridden,
    StepBegun,
    StepTaken,
    SessionCreated,
    SpawnRefused,
    DependencyMet,
)
"""Events that record how a spawn was decided, at most one of each type, with these exceptions:

- `StepTaken`: one per step.
- `StepBegun`: one per step, plus one for each holder that starts the step again.
- `DependencyMet`: one per dependency.
"""


NOT_RECORDED = "not recorded by the release that made this decision"
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class EventAtRevision:
    """An event with its log position, and the configuration revision it was decided under."""

    position: int
    config_revision: int
    event: AnyEvent


class DecisionRecord:
    """Events recorded so far for one spawn or message.

    Attributes:
        refused: The refusal, if any.
        is_admission_decided: True if any event after the request is recorded.
    """

    def __init__(
        self,
        events: Sequence[EventAtRevision],
        kinds: Sequence[type[Event]],
        config_revision: int,
        subject: str,
    ) -> None:
        self._events = tuple(events)
        self._recorded: dict[type[Event], Event] = {type(at.event): at.event for at in events}
        self._config_revision = config_revision
        self._subject = subject
        self.refused = self.of(SpawnRefused)
        # Any later event proves that the request was permitted or refused.
        self.is_admission_decided = any(kind in self._recorded for kind in kinds[1:])

    def of(self, kind: type[E]) -> E | None:
        """Return the last event of a type, or None."""
        found = self._recorded.get(kind)
        return found if isinstance(found, kind) else None

    def is_refused_by(self, rule: Rule) -> bool:
        """Return True if this rule refused."""
        return self.refused is not None and self.refused.rule == rule.name

    def judged(
        self,
        step: str,
        rule: str,
        finding: RuleFinding | None,
        by: Event,
        *,
        refused: bool = False,
    ) -> RuleExplanation:
        """Explain a rule that was judged.

        Args:
            step: Step of the decision.
            rule: Name of the rule.
            finding: The compared values; None if the event does not record them.
            by: Event that records the result.
            refused: True if the rule refused.
        """
        recorded = next(at for at in self._events if at.event is by)
        result: RuleResult = "refused" if refused else "passed" if finding else "not_recorded"
        text = f"refused; the compared values were {NOT_RECORDED}" if refused else NOT_RECORDED
        return RuleExplanation(
            step=step,
            rule=rule,
            result=result,
            compared=finding.compared if finding else None,
            text=finding.text if finding else text,
            position=recorded.position,
            config_revision=recorded.config_revision,
        )

    def not_judged(self, step: str, rule: str, text: str | None = None) -> RuleExplanation:
        """Explain a rule that was not judged, or not yet.

        Args:
            step: Step of the decision.
            rule: Name of the rule.
            text: Explanation; derived from the refusal, if any, by default.
        """
        if text is None and self.refused is not None:
            text = f"{quote_name(self.refused.rule)} refused the {self._subject} before"
        return RuleExplanation(
            step=step,
            rule=rule,
            result="not_judged",
            text=text or "not evaluated yet",
            position=None,
            config_revision=self._config_revision,
        )


class SpawnRecord(DecisionRecord):
    """Events recorded so far for one spawn. Attributes are None if not recorded yet.

    Raises:
        ValueError: The events do not include the request.
    """

    def __init__(self, events: Sequence[EventAtRevision]) -> None:
        recorded = [at.event for at in events]
        request = next((event for event in recorded if isinstance(event, SpawnRequested)), None)
        if request is None:
            raise ValueError("a spawn is explained from its request on")
        super().__init__(events, DECIDING, request.config_revision, "spawn")
        self.request = request
        self.attempts: frozenset[StepName] = frozenset(
            event.step for event in recorded if isinstance(event, StepBegun)
        )
        self.taken: Mapping[StepName, StepTaken] = {
            event.step: event for event in recorded if isinstance(event, StepTaken)
        }
        self.met: Mapping[UUID, EventAtRevision] = {
            at.event.run_id: at for at in events if isinstance(at.event, DependencyMet)
        }
        self.scripts = self.of(ScriptsResolved)
        self.overridden = self.of(AgentOverridden)
        self.created = self.of(SessionCreated)

    @property
    def agent_id(self) -> str | None:
        """Return the agent that will run, as decided so far."""
        if self.overridden is not None:
            return self.overridden.to_agent_id
        return self.request.requested_agent_id

    @property
    def is_of_same_agent(self) -> bool:
        """Return True if the agent that will run is the requester's."""
        return self.agent_id == self.request.requester.agent_id
