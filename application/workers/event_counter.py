"""Keeps the counts of events up to date, behind the head of the log."""

from application.log.event_log import Tail
from application.ports.event_counts import BLOCK_EVENTS, EventCounts

COUNT_SECONDS = 1.0


class EventCounter:
    """One a process. Each of several counts what it finds uncounted."""

    def __init__(self, counts: EventCounts, tail: Tail) -> None:
        self._counts = counts
        self._tail = tail
        self._counted: int | None = None

    async def count(self) -> None:
        """Count what has come since the last time, if that is a whole block: a server that is idle
        asks the database nothing."""
        position = self._tail.position
        if self._counted is None or position - self._counted >= BLOCK_EVENTS:
            self._counted = await self._counts.count_up_to(position)
