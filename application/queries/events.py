"""Event queries: the filter of events, and pages of the log at a bounded cost."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.command import Column, Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import POSITION_MAX, Parameters, ReadAsOf, operation
from application.queries.paging import LIMIT_DEFAULT, LIMIT_MAX
from application.queries.run_filter import RUN_ID_SCHEMA, TEXT_CHARACTERS_MAX, TREE_DESCRIPTION
from application.queries.runs import readable_run
from application.queries.services import QueryServices
from application.queries.session_reference import resolve_root
from application.queries.views.event import EventListView, event_view
from application.queries.views.view import Answer
from domain.event_types import EVENT_TYPES

TYPES = frozenset(name for name, _ in EVENT_TYPES)
EVENTS_EXAMINED_MAX = 5_000
EVENTS_AT_ONCE = 500
POSITIONS_PASSED_MAX = 100_000
"""Maximum number of positions that one read passes over; skipping them in the database is cheap."""


class EventsOfRuns(Parameters):
    """Filter of events by type, and by run or tree."""

    types: tuple[
        Annotated[
            str, Field(min_length=1, max_length=2000, json_schema_extra={"enum": sorted(TYPES)})
        ],
        ...,
    ] = Field((), description=("Only events of these types (repeatable, or separated by commas)."))
    run_id: str | None = Field(
        None,
        max_length=64,
        description="Only events about this run.",
        json_schema_extra=RUN_ID_SCHEMA,
    )
    tree: str | None = Field(None, max_length=TEXT_CHARACTERS_MAX, description=TREE_DESCRIPTION)


class EventParameters(EventsOfRuns):
    """Filter of events by type, run or tree, and actor."""

    actor: str | None = Field(
        None,
        min_length=1,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "Only events recorded for this actor: a kind (`token`, `child`, `anybody`, `system`),"
            " the id of a token, or the key of the session that acted."
        ),
    )


@dataclass(frozen=True, slots=True)
class EventFilter:
    """A resolved filter of events, restricted to those that the caller may see.

    `actor` is a kind, a token id, or the key of a session that acted. `position` is the end of the
    log, or that of `at`.
    """

    types: tuple[str, ...]
    run_id: UUID | None
    tree: str | None
    caller: Caller
    actor: str | None = None
    position: int = 0

    @property
    def takes_everything(self) -> bool:
        """Return True if no event is filtered out."""
        narrowed = self.types or self.run_id or self.tree or self.actor is not None
        return not narrowed and self.caller.sees_everything

    @property
    def trees(self) -> tuple[str, ...] | None:
        """Return the trees that all matching events belong to, or None if unknown."""
        if self.tree is not None:
            return (self.tree,)
        own = self.caller.only_session if self.run_id is None else None
        return (own,) if own is not None else None

    def takes(self, recorded: RecordedEvent) -> bool:
        """Return True if the event matches and the caller may see it."""
        source = recorded.envelope.provenance
        if self.types and recorded.envelope.type not in self.types:
            return False
        if self.run_id is not None and source.run_id != self.run_id:
            return False
        if self.tree is not None and source.correlation != self.tree:
            return False
        if self.actor is not None and self.actor not in source.actor:
            return False
        if self.caller.sees_everything or self.run_id is not None:
            return True
        return source.correlation is not None and self.caller.acts_for(source.correlation)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, and the position that the scan reached. With the newest first, events after that
    position were scanned."""

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
    newest_first: bool = False,
) -> EventPage:
    """Return up to `limit` matching events after `after`, up to `head`.

    A page scans at most `examined_max` events and `passed_max` positions; a sparse filter continues
    from `EventPage.position`. Events of a run have an index of their own and are scanned without a
    limit of positions.
    """
    low, high = after, head
    if criteria.run_id is None and newest_first:
        low = max(low, high - passed_max)
    elif criteria.run_id is None:
        high = min(high, low + passed_max)
    events: list[RecordedEvent] = []
    examined = 0
    while low < high and examined < examined_max:
        page_length = min(EVENTS_AT_ONCE, examined_max - examined)
        found = await log.read(
            after=low,
            limit=page_length,
            until=high,
            types=criteria.types,
            run_id=criteria.run_id,
            correlations=criteria.trees,
            actor=criteria.actor,
            newest_first=newest_first,
        )
        for recorded in found:
            position = recorded.envelope.position
            low, high = (low, position - 1) if newest_first else (position, high)
            if criteria.takes(recorded):
                events.append(recorded)
                if len(events) == limit:
                    return EventPage(events, high if newest_first else low)
        if len(found) < page_length:
            return EventPage(events, low if newest_first else high)
        examined += len(found)
    return EventPage(events, high if newest_first else low)


async def event_filter(
    services: QueryServices,
    caller: Caller,
    wanted: EventParameters,
    *,
    at: str | None = None,
    tree_at: int | None = None,
) -> EventFilter:
    """Return the filter of the events that the caller wants and may see, as of `at`.

    The tree is resolved as of `tree_at`, by default as of `at`.

    Raises:
        QueryError: A type is unknown, or the caller may not see the run or tree.
    """
    run_id, tree = wanted.run_id, wanted.tree
    names = tuple(name.strip() for name in ",".join(wanted.types).split(",") if name.strip())
    unknown = [name for name in names if name not in TYPES]
    if wanted.types and not names:
        raise invalid_value("/query/types", "must name an event type; omit it instead")
    if unknown:
        detail = f"there is no event type {unknown[0]}; the types are {', '.join(sorted(TYPES))}"
        errors = ({"pointer": "/query/types", "detail": detail},)
        raise QueryError("invalid_request", detail, errors=errors)
    when = await resolve_as_of(services, caller, at)
    run = await readable_run(services, caller, run_id, when) if run_id is not None else None
    if run is None and caller.run_id is not None:
        raise QueryError(
            "not_permitted", ("a child's token may only read the events of one run; name it")
        )
    if tree is not None:
        tree_at = when.position if tree_at is None else tree_at
        tree = await resolve_root(services, caller, tree, at=tree_at)
    return EventFilter(
        names,
        run.run_id if run else None,
        tree,
        caller,
        wanted.actor,
        when.position,
    )


class ListEvents(EventParameters, ReadAsOf):
    """Parameters of `list_events`."""

    after: int | None = Field(
        None,
        ge=0,
        le=POSITION_MAX,
        description=(
            "Only events after this position. Default: the beginning of the log; for a"
            " stream, its head."
        ),
    )
    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="Maximum number of items.")
    before: int | None = Field(
        None, ge=1, le=POSITION_MAX, description="Only events before this position, newest first."
    )
    order: Literal["asc", "desc"] | None = Field(
        None,
        description=(
            "Order by position; `desc` is newest first. Default: `asc`; with `before`, `desc`."
        ),
    )


@operation(
    "GET",
    "/v1/events",
    name="listEvents",
    tag="log",
    scope="read",
    summary="List events of the log, or follow them",
    description=(
        "Returns a page of events after `after`, or the newest ones with `before` or"
        " `order=desc`, as of `at`. With `Accept: text/event-stream` it is a live stream that"
        " resumes after `Last-Event-ID`, else after `after`, else at the head. A filtered stream"
        " also sends `checkpoint` events, so that a resume skips the events that were filtered"
        " out. A reader that is too slow is disconnected and may resume where it stopped. Each"
        " request scans a bounded number of events, so a page may be short or empty: continue"
        " after `nextAfter` until it equals `head`, or, newest first, before `nextBefore` until"
        " that is null."
    ),
    errors=("not_found", "foreign_cursor"),
    streams=True,
    command=Command(
        "event list",
        by_hand=True,
        options={
            "before": Option(
                metavar="POSITION", help=("Only events before this position, newest first.")
            ),
            "actor": Option(
                metavar="ACTOR",
                help=(
                    "Only events recorded for this actor: token, child, anybody, system, a"
                    " token id, or a session key."
                ),
            ),
        },
        columns=(
            Column("POSITION", "position", right=True),
            Column("TIME", "recordedAt", "instant", narrow="day second"),
            Column("RUN", "runId", "id"),
            Column("EVENT", "type"),
            Column("FACTS", form="event facts", folds=True),
        ),
    ),
)
async def list_events(
    services: QueryServices, caller: Caller, query: ListEvents
) -> Answer[EventListView]:
    """Return a page of the log: the first events after `after`, or the last ones before `before`.

    With `before` or order `desc`, the newest event comes first.
    """
    criteria = await event_filter(services, caller, query, at=query.at)
    after, before, order = query.after or 0, query.before, query.order
    if before is not None and order == "asc":
        raise invalid_value(
            "/query/order",
            "must be desc if before is given; omit one of them",
        )
    head = criteria.position
    newest_first = order == "desc" or before is not None
    end = head if before is None else min(head, before - 1)
    page = await page_of_events(
        services.work.log,
        criteria,
        after=after,
        limit=query.limit,
        head=end,
        newest_first=newest_first,
    )
    view = EventListView(
        items=[event_view(recorded) for recorded in page.events],
        next_after=end if newest_first else page.position,
        next_before=page.position + 1 if newest_first and page.position > after else None,
        head=head,
    )
    return Answer(view, head)
