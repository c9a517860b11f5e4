"""Keeps the event counts up to date in the background."""

from application.log.event_log import Tail
from application.ports.event_counts import BLOCK_EVENTS, EventCounts

COUNT_SECONDS = 1.0


class EventCounter:
    """Background counter of events. Several processes may count concurrently."""

    def __init__(self, counts: EventCounts, tail: Tail) -> None:
        self._counts = counts
        self._tail = tail
        self._counted: int | None = None

    async def count(self) -> None:
        """Count new events if they fill a block. An idle server makes no query."""
        position = self._tail.position
        if self._counted is None or position - self._counted >= BLOCK_EVENTS:
            self._counted = await self._counts.count_up_to(position)
