"""Pages of the events that a search scans, in order; each is a bounded read of an index."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from application.queries.revisions import revision_at
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM

PAGE_EVENTS = 500
POSITIONS_AT_ONCE = 50_000
"""Maximum number of positions in one read; skipping them in the database is cheap."""
REVISIONS_AT_ONCE = 200
CONFIGURATION = ConfigurationActivated.__name__


class EventsUpTo(NamedTuple):
    """All matching events after the previous page, up to and including a position."""

    events: Sequence[RecordedEvent]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedEvents:
    """The events to scan: those of these types, of one run, or of one tree.

    Configuration revisions belong to every tree. `stream` restricts the events of a run to its own
    stream.
    """

    log: EventLog
    types: tuple[str, ...]
    run_id: UUID | None = None
    tree: str | None = None
    stream: str | None = None

    async def pages(self, after: int, until: int) -> AsyncIterator[EventsUpTo]:
        """Yield the pages after one position, up to and including another."""
        others = tuple(name for name in self.types if name != CONFIGURATION)
        position = after
        while position < until:
            page = await self._page(others, position, until)
            events = list(page.events)
            if CONFIGURATION in self.types:
                events += await self._revisions(position, page.position)
                events.sort(key=lambda recorded: recorded.envelope.position)
            yield EventsUpTo(events, page.position)
            position = page.position

    async def _page(self, types: tuple[str, ...], after: int, until: int) -> EventsUpTo:
        if not types:
            last = await revision_at(self.log, after) + REVISIONS_AT_ONCE
            found = await self.log.newest_of_stream(CONFIG_STREAM, version_max=last, limit=1)
            is_last = not found or found[0].envelope.version < last
            return EventsUpTo([], until if is_last else min(until, found[0].envelope.position))
        # Events of a run have an index of their own, so no limit of positions is needed.
        end = until if self.run_id is not None else min(until, after + POSITIONS_AT_ONCE)
        found = await self.log.read(
            after=after,
            limit=PAGE_EVENTS,
            until=end,
            types=types,
            run_id=self.run_id,
            correlations=(self.tree,) if self.tree is not None else None,
        )
        upto = found[-1].envelope.position if len(found) == PAGE_EVENTS else end
        if self.stream is not None:
            found = [recorded for recorded in found if recorded.envelope.stream == self.stream]
        return EventsUpTo(found, upto)

    async def _revisions(self, after: int, until: int) -> list[RecordedEvent]:
        """Return the revisions activated after one position, up to and including another."""
        first, last = await revision_at(self.log, after), await revision_at(self.log, until)
        if last == first:
            return []
        found = await self.log.newest_of_stream(CONFIG_STREAM, version_max=last, limit=last - first)
        return list(found)
