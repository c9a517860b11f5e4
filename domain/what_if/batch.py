"""Runs that were requested together: all of them are created, or all are refused."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from domain.values import rules
from domain.what_if.decide_again import REQUEST_NAMES, DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import DecisionDifference, Verdict


def decide_batch_again(
    members: Sequence[tuple[RecordedDecision, DecidedAgain]],
) -> list[DecidedAgain]:
    """The verdicts of all runs of one request, of which each was decided by itself."""
    if len(members) < 2:
        return [decided for _, decided in members]
    unknown = [one for _, one in members if one.verdict.verdict == "not-replayable"]
    culprit = next((record for record, one in members if _is_refused(record, one)), None)
    together = [_with_others(record, one, culprit, bool(unknown)) for record, one in members]
    if any(_is_by_others(record) for record, _ in members):
        return [_assume_others(one) for one in together]
    return together


def _is_refused(record: RecordedDecision, decided: DecidedAgain) -> bool:
    """Whether it is refused now because of itself."""
    if decided.verdict.verdict == "newly-refused":
        return True
    by_itself = record.refused is not None and not _is_by_others(record)
    return by_itself and decided.verdict.verdict == "same"


def _is_by_others(record: RecordedDecision) -> bool:
    """Whether it was refused because another was: nobody looked whether it can be prepared."""
    return record.refused is not None and record.refused.rule == rules.BATCH.name


def _assume_others(decided: DecidedAgain) -> DecidedAgain:
    """What is allowed now is so when those can be prepared that nobody looked at."""
    verdict = decided.verdict
    if verdict.verdict != "newly-allowed" or verdict.rule == rules.BATCH.name:
        return decided
    assumed = (*verdict.assumed, "the others of its batch can be prepared")
    return replace(decided, verdict=verdict.changed({"assumed": assumed}))


def _with_others(
    record: RecordedDecision,
    decided: DecidedAgain,
    culprit: RecordedDecision | None,
    is_one_unknown: bool,
) -> DecidedAgain:
    if culprit is not None:
        if record.refused is not None or record is culprit:
            return decided
        if decided.verdict.rule in REQUEST_NAMES:
            # What one request asks for is admitted, or refused, by one rule for all of it.
            return decided
        return DecidedAgain(_refused_with(culprit.run.run_id))
    if is_one_unknown:
        if decided.verdict.verdict == "not-replayable":
            return decided
        missing = ("another task of its batch, by which this one may be refused",)
        return DecidedAgain(Verdict(verdict="not-replayable", missing=missing))
    if not _is_by_others(record):
        return decided
    difference = DecisionDifference(field="/rule", recorded=rules.BATCH.name, decided=None)
    verdict = Verdict(
        verdict="newly-allowed",
        rule=rules.BATCH.name,
        difference=difference,
        assumed=("it can be prepared itself: the others of its batch were looked at first",),
    )
    return DecidedAgain(verdict)


def _refused_with(culprit: UUID) -> Verdict:
    difference = DecisionDifference(field="/rule", recorded=None, decided=rules.BATCH.name)
    text = f"run {culprit} of its batch would be refused, so none of them would be created"
    return Verdict(verdict="newly-refused", rule=rules.BATCH.name, text=text, difference=difference)
