"""The log: which of its events are wanted, and a page of them at a cost that is bounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from application.queries.access import Caller, require_scope
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.paging import LIMIT_DEFAULT
from application.queries.runs import readable_run
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_session_key
from application.queries.views.event import EventListView, event_view
from application.queries.views.view import Answer
from domain.event_types import EVENT_TYPES

TYPES = frozenset(name for name, _ in EVENT_TYPES)
EVENTS_EXAMINED_MAX = 5_000
EVENTS_AT_ONCE = 500
POSITIONS_PASSED_MAX = 100_000
"""So far the database looks for events that it can leave out by itself, which is cheap."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted, and whose the caller may see."""

    types: tuple[str, ...]
    run_id: UUID | None
    tree: str | None
    caller: Caller

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is left out."""
        narrowed = self.types or self.run_id or self.tree
        return not narrowed and self.caller.sees_everything

    @property
    def trees(self) -> tuple[str, ...] | None:
        """The trees to which all that is wanted belongs; None when that is not known."""
        if self.tree is not None:
            return (self.tree,)
        own = self.caller.only_session if self.run_id is None else None
        return (own,) if own is not None else None

    def takes(self, recorded: RecordedEvent) -> bool:
        """Whether an event is wanted and may be seen."""
        source = recorded.envelope.provenance
        if self.types and recorded.envelope.type not in self.types:
            return False
        if self.run_id is not None and source.run_id != self.run_id:
            return False
        if self.tree is not None and source.correlation != self.tree:
            return False
        if self.caller.sees_everything or self.run_id is not None:
            return True
        return source.correlation is not None and self.caller.acts_for(source.correlation)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, and the position up to which the log was looked through."""

    events: list[RecordedEvent]
    position: int


async def page_of_events(
    log: EventLog,
    criteria: EventFilter,
    *,
    after: int,
    limit: int,
    head: int,
    examined_max: int = EVENTS_EXAMINED_MAX,
    passed_max: int = POSITIONS_PASSED_MAX,
) -> EventPage:
    """Up to `limit` events behind `after`, out of at most `examined_max`, no further than
    `passed_max` positions on. A question that few events answer goes on from where it ends.

    The events of a run stand in an index of their own, so these are looked for up to the head.
    """
    end = head if criteria.run_id is not None else min(head, after + passed_max)
    events: list[RecordedEvent] = []
    position = after
    examined = 0
    while position < end and examined < examined_max:
        page_length = min(EVENTS_AT_ONCE, examined_max - examined)
        found = await log.read(
            after=position,
            limit=page_length,
            until=end,
            types=criteria.types,
            run_id=criteria.run_id,
            correlations=criteria.trees,
        )
        for recorded in found:
            position = recorded.envelope.position
            if criteria.takes(recorded):
                events.append(recorded)
                if len(events) == limit:
                    return EventPage(events, position)
        if len(found) < page_length:
            return EventPage(events, end)
        examined += len(found)
    return EventPage(events, position)


async def event_filter(
    services: QueryServices,
    caller: Caller,
    *,
    types: Sequence[str] = (),
    run_id: str | None = None,
    tree: str | None = None,
    at: int | None = None,
) -> EventFilter:
    """The events that a caller wants of those that it may see. A type may stand for several, by
    commas; `tree` is a root session in any spelling, as it was understood at position `at`, or is
    now."""
    require_scope(caller, "read")
    names = tuple(name.strip() for name in ",".join(types).split(",") if name.strip())
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise QueryError(
            "invalid_request",
            f"there is no event type {unknown[0]}; there are {', '.join(sorted(TYPES))}",
        )
    now = await resolve_as_of(services, caller, None)
    run = await readable_run(services, caller, run_id, now) if run_id else None
    if run is None and caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token reads events of one run: give runId")
    if tree:
        tree = await resolve_session_key(
            services,
            caller,
            tree,
            pointer="/query/tree",
            at=now.position if at is None else at,
        )
    return EventFilter(names, run.run_id if run else None, tree or None, caller)


async def list_events(
    services: QueryServices, criteria: EventFilter, *, after: int = 0, limit: int = LIMIT_DEFAULT
) -> Answer[EventListView]:
    """A page of the log, behind `after`."""
    head = await services.work.log.head()
    page = await page_of_events(services.work.log, criteria, after=after, limit=limit, head=head)
    items = [event_view(recorded) for recorded in page.events]
    return Answer(EventListView(items=items, next_after=page.position, head=head), head)
