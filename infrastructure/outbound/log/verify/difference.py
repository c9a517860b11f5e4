"""Something that is not as it was recorded."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

DifferenceKind = Literal[
    "changed",
    "hash",
    "missing",
    "inserted",
    "swapped",
    "truncated",
    "rewritten",
    "head",
    "order",
    "append",
    "version",
    "commit",
    "unreadable",
    "content",
    "transcript",
    "projection",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wrong, in words, and the first position at which it shows."""

    position: int
    kind: DifferenceKind
    text: str

    def __str__(self) -> str:
        return f"position {self.position}: {self.text}"


def first_difference(found: Iterable[Difference | None]) -> Difference | None:
    """The one with the lowest position; of several there, the one that was named first."""
    return min((one for one in found if one is not None), key=_position, default=None)


def _position(one: Difference) -> int:
    return one.position


def format_positions(first: int, last: int) -> str:
    """How a stretch of positions is called."""
    return f"position {first} is" if first == last else f"positions {first} to {last} are"
