"""Explanation of the admission rules, from the facts recorded with the request."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from domain.explanation.record import DecisionRecord, RuleExplanation
from domain.spawn.admission import AdmissionRule
from domain.values.record import Event

F = TypeVar("F")


def explain_admission(
    record: DecisionRecord, table: Iterable[AdmissionRule[F]], facts: F, request: Event
) -> Iterator[RuleExplanation]:
    """Yield an explanation of each rule; rules after the first refusal were not judged.

    Args:
        record: Record of the spawn or message.
        table: Admission rules, in the order in which they are judged.
        facts: Facts recorded with the request.
        request: Event that records the facts.
    """
    step, over = "admission", not record.is_admission_decided
    for row in table:
        if over:
            yield record.not_judged(step, row.rule.name)
            continue
        over = record.is_refused_by(row.rule)
        by = record.refused if over and record.refused else request
        finding = row.compared(facts, over)
        yield record.judged(step, row.rule.name, finding, by, refused=over)
