"""Explanation of an accepted or refused message, rule by rule, from the record.

No rule is judged again. The record names the rule that refused; rules before it passed, and rules
after it were not judged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from domain.configuration.configuration import Configuration
from domain.explanation.admission import explain_admission
from domain.explanation.plan import explain_capabilities, explain_plan, explain_tools
from domain.explanation.record import DecisionRecord, EventAtRevision, RuleExplanation
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, PlanRecord
from domain.run.events import ContinuationPlanned, MessageReceived, SpawnRefused
from domain.run.facts import AttachmentsRequest
from domain.run.plan_facts import PlanFacts
from domain.session.events import ChildAdmitted
from domain.spawn.admission import CONTINUATION
from domain.spawn.stages import MESSAGE_STAGES
from domain.values.record import ContentRef
from domain.values.rules import CAPABILITIES, TOOLS

CONTINUING = (MessageReceived, ChildAdmitted, ContinuationPlanned, SpawnRefused)
"""Events that record how a message was decided; at most one of each type."""


@dataclass(frozen=True, slots=True)
class _MessageRequest:
    """Request of a message: the session's agent, no workspace and no attachments."""

    requested_agent_id: str
    workspace_argument: ContentRef | None = None
    attachments: AttachmentsRequest | None = None


def explain_continuation(
    events: Sequence[EventAtRevision], configuration: Configuration | None = None
) -> tuple[RuleExplanation, ...]:
    """Explain every rule for a message, in the order in which they are judged.

    Args:
        events: Events so far of the run that continues a session.
        configuration: Configuration at the decision's revision; None if it cannot be read.

    Raises:
        ValueError: `events` does not include the message.
    """
    record = _MessageRecord(events)
    explainers = {"admission": _admission, "plan": _plan, "outcome": _outcome}
    return tuple(
        explanation
        for stage in MESSAGE_STAGES
        for explanation in explainers[stage.name](record, configuration)
    )


class _MessageRecord(DecisionRecord):
    """Recorded events of a message so far. Attributes are None if not recorded yet."""

    def __init__(self, events: Sequence[EventAtRevision]) -> None:
        recorded = [at.event for at in events]
        message = next((event for event in recorded if isinstance(event, MessageReceived)), None)
        if message is None:
            raise ValueError("a continuation is explained from its message on")
        super().__init__(events, CONTINUING, message.config_revision, "message")
        self.message = message
        self.planned = self.of(ContinuationPlanned)


def _admission(record: _MessageRecord, _: Configuration | None) -> Iterator[RuleExplanation]:
    return explain_admission(record, CONTINUATION, record.message.facts, record.message)


def _plan(record: _MessageRecord, configuration: Configuration | None) -> Iterator[RuleExplanation]:
    def planning(facts: PlanFacts, refused: bool) -> PlanRecord:
        return PlanRecord(
            request=_MessageRequest(record.message.agent_id),
            agent_id=record.message.agent_id,
            facts=facts,
            plan=record.planned.plan if record.planned else None,
            refused=refused,
            configuration=configuration,
        )

    by = record.planned or record.refused
    is_planned = by is not None and by.facts is not None
    return explain_plan(record, CONTINUED_ELIGIBILITY, by if is_planned else None, planning)


def _outcome(
    record: _MessageRecord, configuration: Configuration | None
) -> Iterator[RuleExplanation]:
    step, planned = "preparation", record.planned
    if planned is None:
        yield from (record.not_judged(step, rule.name) for rule in (TOOLS, CAPABILITIES))
        return
    yield record.judged(step, TOOLS.name, explain_tools(planned, configuration), planned)
    finding = explain_capabilities(planned, record.message.depth)
    yield record.judged(step, CAPABILITIES.name, finding, planned)
