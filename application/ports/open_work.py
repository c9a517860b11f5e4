"""Counts of open work. Their cost depends on the number of open rows, not on the length of the
log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

COUNTED_MAX = 10_000
"""Limit for counting parked deliveries, which stay until a user acts on them."""


class LaneCount(NamedTuple):
    """Numbers of runs in a lane: those with a slot, and those queued."""

    lane: str
    depth: int
    running: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWorkCounts:
    """Open work in the whole log.

    Attributes:
        head: Last position of the log.
        lanes: Lanes with runs in them.
        due: Number of runs by the next action due, except archiving.
        effects: Number of runs with an undo, hook or webhook delivery to do.
        parked: Number of runs with an announcement whose delivery was given up for some webhook.
    """

    head: int
    lanes: Sequence[LaneCount]
    due: Mapping[str, int]
    effects: int
    parked: int


class OpenWork(Protocol):
    async def count(self) -> OpenWorkCounts:
        """Count open work.

        Raises:
            LogUnavailableError: If the database does not answer.
        """
        ...
