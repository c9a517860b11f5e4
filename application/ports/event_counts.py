"""Counts of events by kind, up to a position, at a cost that does not grow with the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

BLOCK_EVENTS = 64
"""Counts are stored at each multiple of this position."""

EventTally = Mapping[str, int]
"""Number of events by kind.

`RunEnded` counts all events of that type, `RunEnded/timeout` those with that outcome, and
`SpawnRefused/depth` those refused by that rule.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Filter for the events of a run, of a tree, or of both.

    `actor` is a kind of actor, the id of a token, or the key of a session that acted.
    """

    run_id: UUID | None = None
    tree: str | None = None
    actor: str | None = None


class CountedEvents(NamedTuple):
    """Tallies of position ranges.

    `counted_to` is the position up to which events were counted, None if all of them were.
    """

    tallies: Sequence[EventTally]
    counted_to: int | None


class EventCounts(Protocol):
    """Event counts of the log. They are stored and never change, because the log is append-only."""

    async def count_up_to(self, position: int) -> int:
        """Count events in whole blocks up to `position`, store the counts, and return the last
        counted position.

        Safe to run concurrently, because all callers write the same counts. A killed call leaves no
        partial block.
        """
        ...

    async def up_to(self, positions: Sequence[int]) -> Sequence[EventTally]:
        """Return the tally of all events up to each position. `positions` must ascend.

        Raises:
            LogUnavailableError: While too much of the log is not counted yet.
        """
        ...

    async def of_some(self, query: EventQuery, edges: Sequence[int]) -> CountedEvents:
        """Return the tallies of matching events after each edge, up to and including the next edge.

        The number of events examined is limited; see `CountedEvents.counted_to`.
        """
        ...

    async def live_runs(self, position: int) -> frozenset[UUID]:
        """Return the runs that were requested and not over as of a position.

        Raises:
            LogUnavailableError: While too much of the log is not counted yet.
        """
        ...

    async def instants_of(self, positions: Sequence[int]) -> Mapping[int, datetime]:
        """Return when the events at these positions were recorded."""
        ...

    async def positions_at(self, instants: Sequence[datetime]) -> Sequence[int]:
        """Return, for each instant, the last position recorded at or before it; 0 if there is
        none."""
        ...
