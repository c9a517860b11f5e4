"""What comes of a recorded decision when it is decided again under another configuration."""

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
"""`same`: nothing that is recorded of the decision would be otherwise, or it is refused either way.
The others but the last name the first that would be, in the order in which it is decided.
`not-replayable`: something that decides it now is not on record."""

VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)


class DecisionDifference(Fact):
    """The first thing that differs: what it is, as a JSON pointer, as it was recorded, and as it is
    decided now. Texts are not shown; they are referred to by where they come from."""

    field: str
    recorded: JsonValue = None
    decided: JsonValue = None


class Verdict(Fact):
    """`rule` is the one that refuses now, or, of what is newly allowed, the one that had refused;
    `text` is what the caller would be told of a refusal. `missing` names what has no recorded input
    and decides; `assumed` what has none either and was taken to be in order."""

    verdict: VerdictName
    rule: str | None = None
    text: str | None = None
    difference: DecisionDifference | None = None
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


SAME = Verdict(verdict="same")


class NotReplayable(Exception):
    """What is decided now depends on something that is not on record."""

    def __init__(self, *missing: str) -> None:
        super().__init__("; ".join(missing))
        self.missing = missing


def not_replayable(*missing: str) -> Verdict:
    """The verdict that names what is missing."""
    return Verdict(verdict="not-replayable", missing=missing)
