"""The events in which a spawn or a message was decided, and what they say of its rules."""

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

# One rule of a decision, as it is explained.


RuleResult = Literal["passed", "refused", "not_judged", "not_recorded"]
"""`passed`: it did not refuse the spawn. `not_judged`: the decision did not come so far.
`not_recorded`: the release that decided did not record what it compared."""


class RuleExplanation(Fact):
    """What a rule compared, and what came of it.

    `position` is that of the event which records it, None when nothing does; `config_revision`
    the revision it was decided under. `compared` is None when nothing was, or what was
    is not recorded.
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
"""The events that say how a spawn was decided; there is one of each at most, of those of steps one
a step, of `DependencyMet` one for each run that is waited for, and one `StepBegun` more for each
holder that begins it again."""


NOT_RECORDED = "not recorded by the release that decided this"
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class EventAtRevision:
    """An event with its position and the revision of the configuration it was decided under."""

    position: int
    config_revision: int
    event: AnyEvent


class DecisionRecord:
    """What is recorded so far of one spawn or message. `kinds` are the events that say how it was
    decided, its request first; others say nothing here. `subject` is what it is, in words."""

    def __init__(
        self,
        events: Sequence[EventAtRevision],
        kinds: Sequence[type[Event]],
        config_revision: int,
        subject: str,
    ) -> None:
        self._events = tuple(events)
        self._recorded: dict[type[Event], Event] = {type(one.event): one.event for one in events}
        self._config_revision = config_revision
        self._subject = subject
        self.refused = self.of(SpawnRefused)
        # Whatever is on record behind the request: it was permitted then, or refused.
        self.is_admission_decided = any(kind in self._recorded for kind in kinds[1:])

    def of(self, kind: type[E]) -> E | None:
        """The last event of that kind; None when there is none."""
        found = self._recorded.get(kind)
        return found if isinstance(found, kind) else None

    def is_refused_by(self, rule: Rule) -> bool:
        """Whether that rule refused it."""
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
        """A rule that was judged, as that event records it; `finding` None when it does not say
        what was compared."""
        recorded = next(one for one in self._events if one.event is by)
        result: RuleResult = "refused" if refused else "passed" if finding else "not_recorded"
        text = f"refused; what was compared is {NOT_RECORDED}" if refused else NOT_RECORDED
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
        """A rule to which the decision did not come, or not yet; `text` where more is known."""
        if text is None and self.refused is not None:
            text = f"{quote_name(self.refused.rule)} refused the {self._subject} before"
        return RuleExplanation(
            step=step,
            rule=rule,
            result="not_judged",
            text=text or "not judged yet",
            position=None,
            config_revision=self._config_revision,
        )


class SpawnRecord(DecisionRecord):
    """What is recorded of one spawn so far; None what is not. `ValueError` without the request."""

    def __init__(self, events: Sequence[EventAtRevision]) -> None:
        kinds = [one.event for one in events]
        request = next((one for one in kinds if isinstance(one, SpawnRequested)), None)
        if request is None:
            raise ValueError("a spawn is explained from its request on")
        super().__init__(events, DECIDING, request.config_revision, "spawn")
        self.request = request
        self.attempts: frozenset[StepName] = frozenset(
            one.step for one in kinds if isinstance(one, StepBegun)
        )
        self.taken: Mapping[StepName, StepTaken] = {
            one.step: one for one in kinds if isinstance(one, StepTaken)
        }
        self.met: Mapping[UUID, EventAtRevision] = {
            one.event.run_id: one for one in events if isinstance(one.event, DependencyMet)
        }
        self.scripts = self.of(ScriptsResolved)
        self.overridden = self.of(AgentOverridden)
        self.created = self.of(SessionCreated)

    @property
    def agent_id(self) -> str | None:
        """The agent that will run, as far as it is decided."""
        if self.overridden is not None:
            return self.overridden.to_agent_id
        return self.request.requested_agent_id

    @property
    def is_of_same_agent(self) -> bool:
        """Whether the agent that will run is its requester's."""
        return self.agent_id == self.request.requester.agent_id
