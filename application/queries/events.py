"""The log: which of its events are wanted, and a page of them at a cost that is bounded."""

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
"""So far the database looks for events that it can leave out by itself, which is cheap."""


class EventsOfRuns(Parameters):
    """Which events by their types, and by the run or the tree that they are of."""

    types: tuple[
        Annotated[
            str, Field(min_length=1, max_length=2000, json_schema_extra={"enum": sorted(TYPES)})
        ],
        ...,
    ] = Field((), description="Of any of these types: one each time, or names by commas.")
    run_id: str | None = Field(
        None, max_length=64, description="Of this run only.", json_schema_extra=RUN_ID_SCHEMA
    )
    tree: str | None = Field(None, max_length=TEXT_CHARACTERS_MAX, description=TREE_DESCRIPTION)


class EventParameters(EventsOfRuns):
    """Which events, also by who acted."""

    actor: str | None = Field(
        None,
        min_length=1,
        max_length=TEXT_CHARACTERS_MAX,
        description=(
            "On the word of this actor: a kind (`token`, `child`, `anybody`, `system`), the id of a"
            " token, or the key of a session that acted."
        ),
    )


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted, and whose the caller may see. `actor` is a kind, the id of a token
    or the key of a session that acted; `position` the end of the log, or that of `at`."""

    types: tuple[str, ...]
    run_id: UUID | None
    tree: str | None
    caller: Caller
    actor: str | None = None
    position: int = 0

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is left out."""
        narrowed = self.types or self.run_id or self.tree or self.actor is not None
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
        if self.actor is not None and self.actor not in source.actor:
            return False
        if self.caller.sees_everything or self.run_id is not None:
            return True
        return source.correlation is not None and self.caller.acts_for(source.correlation)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, and the position up to which the log was looked through; with the newest first,
    behind which it was."""

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
    """Up to `limit` events behind `after` and not behind `head`, out of at most `examined_max`, no
    further than `passed_max` positions on. A question that few events answer goes on from where it
    ends.

    The events of a run stand in an index of their own, so these are looked for up to the end.
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
    """Return the filter of the events that a caller wants and may see, as of `at`. A tree has the
    root that its name meant then, or at position `tree_at`."""
    run_id, tree = wanted.run_id, wanted.tree
    names = tuple(name.strip() for name in ",".join(wanted.types).split(",") if name.strip())
    unknown = [name for name in names if name not in TYPES]
    if wanted.types and not names:
        raise invalid_value("/query/types", "must name a type of events: leave it out")
    if unknown:
        detail = f"there is no event type {unknown[0]}; there are {', '.join(sorted(TYPES))}"
        errors = ({"pointer": "/query/types", "detail": detail},)
        raise QueryError("invalid_request", detail, errors=errors)
    when = await resolve_as_of(services, caller, at)
    run = await readable_run(services, caller, run_id, when) if run_id is not None else None
    if run is None and caller.run_id is not None:
        raise QueryError("not_permitted", "a child's token reads events of one run: give runId")
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
        None, ge=0, le=POSITION_MAX, description="Behind this position; streams default to now."
    )
    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="How many items at most.")
    before: int | None = Field(
        None, ge=1, le=POSITION_MAX, description="Before this position, the newest first."
    )
    order: Literal["asc", "desc"] | None = Field(
        None, description="`desc` for the newest first, which is so with `before` anyway."
    )


@operation(
    "GET",
    "/v1/events",
    name="listEvents",
    tag="log",
    scope="read",
    summary="The log",
    description=(
        "A page of events behind `after`, or of the newest ones with `before` or `order=desc`, as"
        " of `at`. With `Accept: text/event-stream` it is a live stream that resumes from"
        " `Last-Event-ID`, else `after`, else the head. With filters the stream sends `checkpoint`"
        " events, so that a resume skips what was filtered. A reader that is too slow is"
        " disconnected and resumes where it was. One request for a page looks at a bounded number"
        " of events, so a page may be short or empty: go on behind `nextAfter` until it is `head`,"
        " and with the newest first before `nextBefore` until that is null."
    ),
    errors=("not_found", "foreign_cursor"),
    streams=True,
    command=Command(
        "event list",
        by_hand=True,
        options={
            "before": Option(metavar="POSITION", help="Only before it, the newest first."),
            "actor": Option(
                metavar="WHO",
                help="Only on this word: token, child, anybody, system, a token's id, a session's"
                " key.",
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
    """Return a page of the log: the first events after `after`, or, with `before` or in the order
    `desc`, the last ones before it, the newest first."""
    criteria = await event_filter(services, caller, query, at=query.at)
    after, before, order = query.after or 0, query.before, query.order
    if before is not None and order == "asc":
        raise invalid_value(
            "/query/order",
            "is desc where before is given: leave one of them out",
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
