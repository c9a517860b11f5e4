"""Why a message became a run of its session, or was refused: each rule, from what was recorded.

No verdict is made again. The rule that refused is named by the record; those before it passed, and
those behind it were not judged.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from domain.configuration.configuration import Configuration
from domain.explanation.admission import explain_active_children
from domain.explanation.plan import PLAN_RULES, PlanRecord, describe_capabilities, explain_tools
from domain.explanation.record import (
    NOT_RECORDED,
    EventAtRevision,
    RuleExplanation,
    RuleFinding,
    RuleResult,
)
from domain.run.events import ContinuationPlanned, MessageReceived, SpawnRefused
from domain.run.facts import AttachmentsRequest
from domain.run.plan_facts import PlanFacts
from domain.session.events import ChildAdmitted
from domain.values.record import ContentRef, Event
from domain.values.text import quote_name

CONTINUING = (MessageReceived, ChildAdmitted, ContinuationPlanned, SpawnRefused)


"""The events that say how a message was decided; there is one of each at most."""


E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class _MessageRequest:
    """What a message asks for: the agent of its session, and neither a folder nor files."""

    requested_agent_id: str
    workspace_argument: ContentRef | None = None
    attachments: AttachmentsRequest | None = None


def explain_continuation(
    events: Sequence[EventAtRevision], configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    """Every rule, in the order in which they are judged, from the events of a run that goes on with
    a session so far.

    `configuration` is that of the revision they were decided under; None when it cannot be read.
    `ValueError` when the message is not among the events.
    """
    record = _MessageRecord(events)
    return (_admission(record), *_plan(record, configuration), *_outcome(record, configuration))


class _MessageRecord:
    """What is recorded of one message so far; None what is not."""

    def __init__(self, events: Sequence[EventAtRevision]) -> None:
        self._recorded: dict[type[Event], EventAtRevision] = {
            type(one.event): one for one in events
        }
        message = self._of(MessageReceived)
        if message is None:
            raise ValueError("a continuation is explained from its message on")
        self.message = message
        self.planned = self._of(ContinuationPlanned)
        self.refused = self._of(SpawnRefused)

    def _of(self, kind: type[E]) -> E | None:
        found = self._recorded.get(kind)
        return found.event if found is not None and isinstance(found.event, kind) else None

    @property
    def is_admission_decided(self) -> bool:
        """Whether anything is on record behind the message: it was permitted then, or refused."""
        return any(kind in self._recorded for kind in CONTINUING[1:])

    def judged(
        self, step: str, rule: str, told: RuleFinding | None, by: Event, *, refused: bool = False
    ) -> RuleExplanation:
        recorded = self._recorded[type(by)]
        result: RuleResult = "refused" if refused else "passed" if told else "not_recorded"
        return RuleExplanation(
            step=step,
            rule=rule,
            result=result,
            compared=told.compared if told else None,
            text=told.text if told else NOT_RECORDED,
            position=recorded.position,
            config_revision=recorded.config_revision,
        )

    def not_judged(self, step: str, rule: str) -> RuleExplanation:
        text = "not judged yet"
        if self.refused is not None:
            text = f"{quote_name(self.refused.rule)} refused the message before"
        return RuleExplanation(
            step=step,
            rule=rule,
            result="not_judged",
            text=text,
            position=None,
            config_revision=self.message.config_revision,
        )


def _admission(record: _MessageRecord) -> RuleExplanation:
    step, rule = "admission", "active_children"
    if not record.is_admission_decided:
        return record.not_judged(step, rule)
    facts, refusal = record.message.facts, record.refused
    over = refusal is not None and refusal.rule == rule
    told = explain_active_children(facts.active_children, facts.max_children, refused=over)
    by = refusal if over and refusal is not None else record.message
    return record.judged(step, rule, told, by, refused=over)


def _plan(record: _MessageRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    step, refusal = "preparation", record.refused
    by = record.planned or refusal
    if by is None or by.facts is None:
        yield from (record.not_judged(step, rule) for rule in CONTINUATION_RULES)
        return
    refusing = refusal.rule if refusal else None
    over = False
    for rule, explained in CONTINUATION_RULES.items():
        is_it = rule == refusing
        told = None
        if not over:
            told = explained(_planning(record, by.facts, configuration, refused=is_it))
        if over or (told is None and refusal is not None and not is_it):
            yield record.not_judged(step, rule)
        else:
            yield record.judged(step, rule, told, by, refused=is_it)
        over = over or is_it


def _planning(
    record: _MessageRecord, facts: PlanFacts, configuration: Configuration | None, *, refused: bool
) -> PlanRecord:
    return PlanRecord(
        request=_MessageRequest(record.message.agent_id),
        agent_id=record.message.agent_id,
        facts=facts,
        plan=record.planned.plan if record.planned else None,
        refused=refused,
        configuration=configuration,
    )


def _workspace(planning: PlanRecord) -> RuleFinding | None:
    facts = planning.facts.workspace
    if facts is None:
        return None
    text = "the folder of the run before is kept"
    if facts.chosen is None:
        text = "the run before had no folder on record, and none is chosen"
    return RuleFinding({**facts.model_dump(mode="json"), "kept": True}, text)


CONTINUATION_RULES: Mapping[str, Callable[[PlanRecord], RuleFinding | None]] = {
    rule: _workspace if rule == "workspace" else explained
    for rule, explained in PLAN_RULES.items()
    # Files are attached when the child is spawned, and never again.
    if rule != "attachments"
}


"""Those of a spawn's plan that a message is planned by, in their order."""


def _outcome(
    record: _MessageRecord, configuration: Configuration | None
) -> Iterator[RuleExplanation]:
    step, planned = "preparation", record.planned
    if planned is None:
        yield from (record.not_judged(step, rule) for rule in ("tools", "capabilities"))
        return
    yield record.judged(step, "tools", explain_tools(planned, configuration), planned)
    told = describe_capabilities(
        record.message.depth, planned.max_depth, planned.role, planned.control_scope
    )
    yield record.judged(step, "capabilities", told, planned)
