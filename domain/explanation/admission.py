"""The rules of admission in words, from the facts that were recorded with the request."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from domain.explanation.record import DecisionRecord, RuleExplanation
from domain.spawn.admission import AdmissionRule
from domain.values.record import Event

F = TypeVar("F")


def explain_admission(
    record: DecisionRecord, table: Iterable[AdmissionRule[F]], facts: F, request: Event
) -> Iterator[RuleExplanation]:
    """Each rule of the table, from the facts of the request or message; those behind the one that
    refused were not judged."""
    step, over = "admission", not record.is_admission_decided
    for one in table:
        if over:
            yield record.not_judged(step, one.rule.name)
            continue
        over = record.is_refused_by(one.rule)
        by = record.refused if over and record.refused else request
        finding = one.compared(facts, over)
        yield record.judged(step, one.rule.name, finding, by, refused=over)
