"""How many events of each kind there are: up to a position, whatever the length of the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

BLOCK_EVENTS = 64
"""Counts are kept at each multiple of this."""

EventTally = Mapping[str, int]
"""How many events by their kind: `RunEnded` are all of that type, `RunEnded/timeout` those with
that outcome, `SpawnRefused/depth` those refused by that rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Events of one run or of one tree, or of both; `actor` is a kind of actor, the id of a token,
    or a session that acted."""

    run_id: UUID | None = None
    tree: str | None = None
    actor: str | None = None


class CountedEvents(NamedTuple):
    """The tallies of ranges of positions, and the position up to which events were counted: None
    when that is all of them."""

    tallies: Sequence[EventTally]
    counted_to: int | None


class EventCounts(Protocol):
    """Counts of the log. What is counted once is kept: the log is only appended to."""

    async def count_up_to(self, position: int) -> int:
        """Count what was not counted up to there, as far as that is whole blocks, and keep it.
        Gives the position up to which events are counted now. Of several at once each writes the
        same; one that is killed leaves nothing half."""
        ...

    async def up_to(self, positions: Sequence[int]) -> Sequence[EventTally]:
        """The tallies of all events up to each of the positions, which ascend. `LogUnavailable`
        while too much of the log is not counted yet."""
        ...

    async def of_some(self, query: EventQuery, edges: Sequence[int]) -> CountedEvents:
        """The tallies of the events behind each edge and not behind the next one; only so many
        events are looked at."""
        ...

    async def instants_of(self, positions: Sequence[int]) -> Mapping[int, datetime]:
        """When the events at these positions were recorded."""
        ...

    async def positions_at(self, instants: Sequence[datetime]) -> Sequence[int]:
        """The last position recorded at or before each of the instants; 0 before all."""
        ...
