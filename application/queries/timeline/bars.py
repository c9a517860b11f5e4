"""The timeline: runs as bars, beside a histogram of events."""

from dataclasses import replace

from pydantic import Field

from application.ports.registry import RunQuery
from application.ports.run_bars import RunBar
from application.queries.access import Caller
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.events import EventParameters, event_filter
from application.queries.operation import LogPart, Page, ReadAsOf, operation
from application.queries.paging import (
    Cursor,
    encode_cursor,
    fingerprint,
    foreign_question,
    read_cursor,
)
from application.queries.run_filter import RunFilter, narrow_to_tree, run_query
from application.queries.services import QueryServices
from application.queries.timeline.histogram import (
    BUCKETS_DEFAULT,
    BUCKETS_MAX,
    EventBucketView,
    LogWindow,
    histogram,
    log_window,
)
from application.queries.views.run import RunView, view_of_bar
from application.queries.views.view import Answer, View, selection

BARS_MAX = 5_000
BARS_DEFAULT = 200
BARS_EXAMINED_MAX = 5_000


@selection(
    "run_id", "stage", "status", "outcome", "agent_id", "label", "depth", "requester_session_key",
    "parent_run_id", "child_session_key", "respawned_from", "stages",
)  # fmt: skip
class RunBarView(RunView):
    """A run as a bar. `parentRunId` is the run that requested it; null if its requester is a
    session that was not spawned here."""


class TimelineView(View):
    """Runs that were requested and not over between the positions `after` and `until`, newest
    first, and a histogram of the events in that range. `bucketsCountedTo` is null if all events
    were counted; `nextCursor` is null on the last page."""

    after: int
    until: int
    items: list[RunBarView]
    next_cursor: str | None
    buckets: list[EventBucketView]
    buckets_counted_to: int | None


class ListTimeline(LogPart, ReadAsOf, Page, RunFilter):
    """Parameters of `list_timeline`."""

    limit: int = Field(BARS_DEFAULT, ge=1, le=BARS_MAX, description="Maximum number of runs.")
    buckets: int | None = Field(
        None,
        ge=0,
        le=BUCKETS_MAX,
        description="Number of time buckets; 0 for none. Default: 100.",
    )


@operation(
    "GET",
    "/v1/timeline",
    name="listTimeline",
    tag="log",
    scope="read",
    summary="List runs as bars of a timeline, with event counts",
    description=(
        "Returns the runs that were requested and not over between `from` and `to`, newest first,"
        " each with the position and instant of every stage that it had reached as of `at`; and"
        " time buckets of equal length with the events in them, as in `/v1/events/histogram`. The"
        " buckets count the whole log in that range, or only `tree` if given; the other filters"
        " apply to runs alone. A token that does not see the whole log gets no buckets unless it"
        " names a tree of its own."
    ),
    errors=("foreign_cursor",),
    command="of the page",
)
async def list_timeline(
    services: QueryServices, caller: Caller, query: ListTimeline
) -> Answer[TimelineView]:
    """Return the runs of a range of the log as of `at`, with the event counts of the range or
    tree."""
    begin, end, at, cursor = query.begin, query.end, query.at, query.cursor
    log_id = services.work.log.log_id
    cursor_fingerprint: str | None = None
    if cursor is None:
        position = (await resolve_as_of(services, caller, at)).position
        place = Cursor.first(position, services.work.log.now())
        after_cursor = None
    else:
        place, cursor_fingerprint = read_cursor(cursor, log_id, await services.work.log.head())
        position, after_cursor = place.at, place.after
    # Session names are resolved as of the first page, so that the query stays the same.
    criteria = await narrow_to_tree(
        services.work.registry, caller, await run_query(services, caller, query, place)
    )
    question = fingerprint(criteria, caller.patterns, begin, end, at)
    if cursor_fingerprint not in (None, question):
        raise foreign_question()
    window = await log_window(services, caller, begin, end, head=position, known=place.window)
    bars, following = await _visible_bars(
        services,
        caller,
        criteria,
        window,
        at=position,
        limit=query.limit,
        after_cursor=after_cursor,
    )
    counts = await _buckets(services, caller, criteria.value_of("root"), window, query.buckets)
    stages = await services.run_bars.stages({bar.run_id: bar.version for bar in bars})
    view = TimelineView(
        after=window.after,
        until=window.until,
        items=[view_of_bar(RunBarView, bar, stages) for bar in bars],
        next_cursor=(
            encode_cursor(
                replace(place, after=following, window=(window.after, window.until)),
                log_id,
                question,
            )
            if following is not None
            else None
        ),
        buckets=counts[0],
        buckets_counted_to=counts[1],
    )
    return Answer(view, position)


async def _visible_bars(
    services: QueryServices,
    caller: Caller,
    query: RunQuery,
    window: LogWindow,
    *,
    at: int,
    limit: int,
    after_cursor: int | None,
) -> tuple[list[RunBar], int | None]:
    """Return up to `limit` bars that the caller may see, and where the next page begins."""
    known: dict[str, bool] = {}
    found: list[RunBar] = []
    examined = 0
    while examined <= BARS_EXAMINED_MAX:
        at_once = limit + 1 if caller.sees_everything else max(limit + 1, BARS_DEFAULT)
        page = await services.run_bars.overlapping(
            query,
            after=window.after,
            until=window.until,
            at=at,
            limit=at_once,
            after_cursor=after_cursor,
        )
        for bar in page:
            if len(found) == limit:
                return found, after_cursor
            if await _covers(services, caller, bar, known):
                found.append(bar)
            after_cursor = bar.created_position
        if len(page) < at_once:
            return found, None
        examined += len(page)
    return found, after_cursor


async def _covers(
    services: QueryServices, caller: Caller, bar: RunBar, known: dict[str, bool]
) -> bool:
    if caller.sees_everything or caller.run_id == bar.run_id:
        return True
    if bar.requester_session_key not in known:
        known[bar.requester_session_key] = await services.access.covers_session(
            caller, bar.requester_session_key
        )
    return known[bar.requester_session_key]


async def _buckets(
    services: QueryServices,
    caller: Caller,
    tree: str | None,
    window: LogWindow,
    buckets: int | None,
) -> tuple[list[EventBucketView], int | None]:
    if buckets == 0:
        return [], None
    try:
        criteria = await event_filter(services, caller, EventParameters(tree=tree))
        found = await histogram(services, criteria, window, buckets or BUCKETS_DEFAULT, "time")
    except QueryError as error:
        if buckets is None and error.code == "not_permitted":
            return [], None
        raise
    return found.items, found.counted_to
