"""Runs that were requested together: all of them are created, or all are refused."""

from collections.abc import Sequence
from dataclasses import replace

from domain.values import rules
from domain.what_if.decide_again import REQUEST_NAMES, DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import DecisionDifference, Verdict, not_replayable

BATCH = rules.BATCH.name
_OTHER_UNKNOWN = "another task of its batch, by which this one may be refused"
_ALLOWED = Verdict(
    verdict="newly-allowed",
    rule=BATCH,
    difference=DecisionDifference(field="/rule", recorded=BATCH, decided=None),
    assumed=("it can be prepared itself: the others of its batch were looked at first",),
)
_Member = tuple[RecordedDecision, DecidedAgain]


def decide_batch_again(members: Sequence[_Member]) -> list[DecidedAgain]:
    """Return the verdicts of all runs of one request, of which each was decided by itself."""
    decided = [one for _, one in members]
    if len(members) < 2:
        return decided
    culprit = next((record for record, one in members if _is_refused(record, one)), None)
    if culprit is not None:
        return [_refused_with(culprit, *member) for member in members]
    verdicts = [one.verdict for one in decided]
    if any(one.verdict == "not-replayable" for one in verdicts):
        unknown = DecidedAgain(not_replayable(_OTHER_UNKNOWN))
        return [one if one.verdict.verdict == "not-replayable" else unknown for one in decided]
    if any(_is_by_others(record) for record, _ in members):
        return [_allowed_with_others(*member) for member in members]
    return decided


def _is_refused(record: RecordedDecision, decided: DecidedAgain) -> bool:
    """Return True if it is refused now because of itself."""
    if decided.verdict.verdict == "newly-refused":
        return True
    by_itself = record.refused is not None and not _is_by_others(record)
    return by_itself and decided.verdict.verdict == "same"


def _is_by_others(record: RecordedDecision) -> bool:
    """Return True if it was refused because another was: it was not looked at itself."""
    return record.refused is not None and record.refused.rule == BATCH


def _refused_with(
    culprit: RecordedDecision, record: RecordedDecision, decided: DecidedAgain
) -> DecidedAgain:
    recorded = record.refused.rule if record.refused is not None else None
    if record is culprit or (recorded is not None and decided.verdict.verdict == "same"):
        return decided
    if recorded is None and decided.verdict.rule in REQUEST_NAMES:
        # One rule of admission refuses all that one request asks for.
        return decided
    difference = DecisionDifference(field="/rule", recorded=recorded, decided=BATCH)
    if recorded is not None:
        return DecidedAgain(Verdict(verdict="same", rule=BATCH, difference=difference))
    others = f"run {culprit.run.run_id} of its batch would be refused"
    text = f"{others}, so none of them would be created"
    verdict = Verdict(verdict="newly-refused", rule=BATCH, text=text, difference=difference)
    return DecidedAgain(verdict)


def _allowed_with_others(record: RecordedDecision, decided: DecidedAgain) -> DecidedAgain:
    """What is allowed now is so if the others can be prepared, which were not looked at."""
    verdict = decided.verdict
    if _is_by_others(record):
        return DecidedAgain(_ALLOWED)
    if verdict.verdict != "newly-allowed":
        return decided
    assumed = (*verdict.assumed, "the others of its batch can be prepared")
    return replace(decided, verdict=verdict.changed({"assumed": assumed}))
