"""What-if for batches: the runs of one request are all created, or all refused."""

from collections.abc import Sequence
from dataclasses import replace

from domain.values import rules
from domain.what_if.decide_again import REQUEST_NAMES, DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import DecisionDifference, Verdict, not_replayable

BATCH = rules.BATCH.name
_OTHER_UNKNOWN = "another task of its batch, whose refusal would refuse this one"
_ALLOWED = Verdict(
    verdict="newly-allowed",
    rule=BATCH,
    difference=DecisionDifference(field="/rule", recorded=BATCH, decided=None),
    assumed=("its own preparation: the other tasks of its batch were checked first",),
)
_Member = tuple[RecordedDecision, DecidedAgain]


def decide_batch_again(members: Sequence[_Member]) -> list[DecidedAgain]:
    """Combine the separate verdicts on the runs of one request.

    Args:
        members: All runs of the batch, each decided again on its own.

    Returns:
        The result for each, in the same order. If one would be refused, so would all; otherwise, if
        one cannot be replayed, none of them can.
    """
    decided = [again for _, again in members]
    if len(members) < 2:
        return decided
    culprit = next((record for record, again in members if _is_refused(record, again)), None)
    if culprit is not None:
        return [_refused_with(culprit, *member) for member in members]
    verdicts = [again.verdict for again in decided]
    if any(again.verdict == "not-replayable" for again in verdicts):
        unknown = DecidedAgain(not_replayable(_OTHER_UNKNOWN))
        return [
            again if again.verdict.verdict == "not-replayable" else unknown for again in decided
        ]
    if any(_is_refused_by_batch(record) for record, _ in members):
        return [_allowed_with_others(*member) for member in members]
    return decided


def _is_refused(record: RecordedDecision, decided: DecidedAgain) -> bool:
    """Return True if the run would be refused on its own account."""
    if decided.verdict.verdict == "newly-refused":
        return True
    by_itself = record.refused is not None and not _is_refused_by_batch(record)
    return by_itself and decided.verdict.verdict == "same"


def _is_refused_by_batch(record: RecordedDecision) -> bool:
    """Return True if the run was refused only because another was; it was not checked itself."""
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
    """Return the result with the assumption that the rest of the batch can be prepared."""
    verdict = decided.verdict
    if _is_refused_by_batch(record):
        return DecidedAgain(_ALLOWED)
    if verdict.verdict != "newly-allowed":
        return decided
    assumed = (*verdict.assumed, "the other tasks of its batch can be prepared")
    return replace(decided, verdict=verdict.changed({"assumed": assumed}))
