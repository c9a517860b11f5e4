"""How much there is to do now, counted among the rows that are open: not by the record's length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

COUNTED_MAX = 10_000
"""Of what is parked no more are counted: it stays until somebody sees to it."""


class LaneCount(NamedTuple):
    """How many runs of a lane have a slot, and how many wait for one."""

    lane: str
    depth: int
    running: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWorkCounts:
    """Of the whole log. `due` is by what somebody has to do next for a run, archiving aside;
    `effects` are runs with something outside to be told or undone, `parked` those with an
    announcement that is not sent to somebody any more."""

    head: int
    lanes: Sequence[LaneCount]
    due: Mapping[str, int]
    effects: int
    parked: int


class OpenWork(Protocol):
    """Counts what is open."""

    async def count(self) -> OpenWorkCounts:
        """How much there is; `LogUnavailable` when the database does not answer."""
        ...
