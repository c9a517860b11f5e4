"""Verdict on a recorded decision that is decided again under another configuration."""

from typing import Literal, get_args

from pydantic import JsonValue

from domain.values.record import Fact

VerdictName = Literal[
    "same",
    "newly-refused",
    "newly-allowed",
    "different-agent",
    "different-model",
    "different-plan",
    "different-context",
    "different-announcement",
    "not-replayable",
]
"""`same`: nothing recorded would differ, or the request is refused either way. `not-replayable`: a
deciding fact is not on record. All others name the first difference, in the order of deciding."""

VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)


class DecisionDifference(Fact):
    """First difference: a JSON pointer, the recorded value, and the value decided now.

    Texts are not shown; they are identified by their source.
    """

    field: str
    recorded: JsonValue = None
    decided: JsonValue = None


class Verdict(Fact):
    """Verdict with its reasons.

    Attributes:
        rule: The rule that refuses now; for `newly-allowed`, the rule that had refused.
        text: The refusal text that the caller would receive.
        missing: Facts that decide but are not on record.
        assumed: Facts that are not on record and were assumed to be in order.
    """

    verdict: VerdictName
    rule: str | None = None
    text: str | None = None
    difference: DecisionDifference | None = None
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


SAME = Verdict(verdict="same")


class NotReplayableError(Exception):
    """The decision depends on facts that are not on record; `missing` names them."""

    def __init__(self, *missing: str) -> None:
        super().__init__("; ".join(missing))
        self.missing = missing


def not_replayable(*missing: str) -> Verdict:
    """Return the verdict `not-replayable` with the missing facts."""
    return Verdict(verdict="not-replayable", missing=missing)
