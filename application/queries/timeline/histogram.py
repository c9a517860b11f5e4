"""Histograms of events: counts of a range of the log in buckets of positions or time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

from pydantic import Field

from application.ports.event_counts import BLOCK_EVENTS, EventQuery, EventTally
from application.queries.access import Caller
from application.queries.as_of import AsOf, read_moment, resolve_as_of
from application.queries.command import Command, Option
from application.queries.errors import QueryError, invalid_value
from application.queries.events import EventFilter, EventParameters, event_filter
from application.queries.operation import LogPart, Read, operation
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View
from domain.values.moments import is_time_ago

BUCKETS_MAX = 500
BUCKETS_DEFAULT = 100
BucketUnit = Literal["position", "time"]


class EventBucketView(View):
    """The events of one bucket, from `firstPosition` at `firstAt` to `lastPosition` at `lastAt`;
    null if there are none. `outcomes` counts runs that ended, by outcome; `rules` counts refusals,
    by rule. `since` (exclusive) and `until` (inclusive) are the edges of a time bucket."""

    first_position: int | None
    first_at: datetime | None
    last_position: int | None
    last_at: datetime | None
    since: datetime | None
    until: datetime | None
    events: int
    types: dict[str, int]
    outcomes: dict[str, int]
    rules: dict[str, int]


class HistogramView(View):
    """Buckets of the events after position `after`, up to position `until`. `countedTo` is null if
    all were counted; otherwise events after that position were not scanned."""

    by: BucketUnit
    after: int
    until: int
    counted_to: int | None
    items: list[EventBucketView]


@dataclass(frozen=True, slots=True)
class LogWindow:
    """A range of the log, after position `after` and up to `until`. `since` and `by` are the
    instants that were given for it, if any."""

    after: int
    until: int
    since: datetime | None = None
    by: datetime | None = None


async def log_window(
    services: QueryServices,
    caller: Caller,
    begin: str | None,
    end: str | None,
    *,
    head: int | None = None,
    known: tuple[int, int] | None = None,
) -> LogWindow:
    """Return the range of the log between two moments, by default the whole log.

    `known` are the positions of a range that the first page of a listing has resolved.

    Raises:
        QueryError: The range ends before it begins.
    """
    now = services.work.log.now()
    if known is not None:
        return LogWindow(*known, _instant(begin, now), _instant(end, now))
    until = await resolve_as_of(services, caller, end, pointer="/query/to")
    if head is not None:
        until = AsOf(min(until.position, head), now=False)
    after = AsOf(0, now=False)
    if begin is not None:
        after = await resolve_as_of(services, caller, begin, pointer="/query/from")
    if after.position > until.position:
        raise invalid_value(
            "/query/from",
            f"is pos:{after.position}, which is after the end of the range, pos:{until.position}",
        )
    return LogWindow(after.position, until.position, _instant(begin, now), _instant(end, now))


def _instant(text: str | None, now: datetime) -> datetime | None:
    """Return the instant that was given. None for a time ago, which each request counts anew."""
    if text is None or is_time_ago(text):
        return None
    moment = read_moment(text, now)
    return moment if isinstance(moment, datetime) else None


class CountEvents(EventParameters, LogPart, Read):
    """Parameters of `count_events`."""

    buckets: int = Field(
        BUCKETS_DEFAULT, ge=1, le=BUCKETS_MAX, description="Maximum number of buckets."
    )
    by: BucketUnit = Field(
        "position", description="Bucket by equal numbers of positions, or by equal lengths of time."
    )


@operation(
    "GET",
    "/v1/events/histogram",
    name="countEvents",
    tag="log",
    scope="read",
    summary="Count events, outcomes and refusals over time",
    description=(
        "Counts the events of the log between `from` and `to` in buckets of equal size, by"
        " position or by time: by type, by outcome of runs that ended, and by rule that refused a"
        " spawn. The cost does not depend on the size of the log. With `runId` or `tree`, events"
        " are scanned one by one, 20,000 at most: `countedTo` says where the scan stopped, and is"
        " null if all were counted. `actor` requires `runId` or `tree`. Without these, a token"
        " for all sessions (`*`) is required."
    ),
    errors=("not_found",),
    command=Command(
        "event histogram",
        "Count events, outcomes and refusals over time.",
        options={
            "buckets": Option(default=24, help="Maximum number of lines, one for each bucket."),
            "by": Option(
                default="time",
                help="position: equal numbers of events per line. time: equal lengths of time.",
            ),
        },
        items="items",
        notes={"countedTo": "only counted up to position {countedTo}; continue with --from"},
    ),
)
async def count_events(
    services: QueryServices, caller: Caller, query: CountEvents
) -> Answer[HistogramView]:
    """Return the histogram of a range of the log, or of the matching events in it."""
    window = await log_window(services, caller, query.begin, query.end)
    criteria = await event_filter(services, caller, query, tree_at=window.until)
    return Answer(
        await histogram(services, criteria, window, query.buckets, query.by), window.until
    )


async def histogram(
    services: QueryServices,
    criteria: EventFilter,
    window: LogWindow,
    buckets: int,
    by: BucketUnit,
) -> HistogramView:
    """Return the histogram of a range of the log.

    Raises:
        QueryError: The caller does not cover the events.
    """
    _require_covered(criteria)
    instants: Sequence[datetime] = ()
    if by == "position":
        edges = _edges_of_positions(window, buckets)
    else:
        instants, edges = await _edges_of_time(services, window, buckets)
    counts = services.event_counts
    counted_to: int | None = None
    tallies: Sequence[EventTally]
    if criteria.run_id is None and criteria.tree is None:
        whole = await counts.up_to(edges)
        tallies = [Counter(later) - Counter(before) for before, later in pairwise(whole)]
    else:
        query = EventQuery(run_id=criteria.run_id, tree=criteria.tree, actor=criteria.actor)
        tallies, counted_to = await counts.of_some(query, edges)
    ends = {
        position
        for after, until in pairwise(edges)
        if after < until
        for position in (after + 1, until)
    }
    recorded = await counts.instants_of(sorted(ends))
    return HistogramView(
        by=by,
        after=window.after,
        until=window.until,
        counted_to=counted_to,
        items=[
            EventBucketView(
                first_position=after + 1 if after < until else None,
                first_at=recorded.get(after + 1) if after < until else None,
                last_position=until if after < until else None,
                last_at=recorded.get(until) if after < until else None,
                since=instants[place] if instants else None,
                until=instants[place + 1] if instants else None,
                **_counts(tallies[place], criteria.types),
            )
            for place, (after, until) in enumerate(pairwise(edges))
        ],
    )


def _require_covered(criteria: EventFilter) -> None:
    if criteria.run_id is None and criteria.tree is None:
        if not criteria.caller.sees_everything:
            raise QueryError(
                "not_permitted",
                "counts of the whole log require a token for all sessions (*); name a run or a"
                " tree",
            )
        if criteria.actor is not None:
            raise invalid_value("/query/actor", "only applies within a run or a tree; name one")
    elif criteria.run_id is None and criteria.tree is not None:
        caller = criteria.caller
        if not caller.sees_everything and not caller.acts_for(criteria.tree):
            raise QueryError(
                "not_permitted", "this token does not act for the session of that tree"
            )


def _edges_of_positions(window: LogWindow, buckets: int) -> list[int]:
    """Return the edges of buckets with equal numbers of positions.

    Edges of large buckets are rounded to the blocks that are counted already.
    """
    span = window.until - window.after
    count = min(buckets, span)
    edges = [window.after + place * span // count for place in range(count)] if count else []
    if count and span // count >= 2 * BLOCK_EVENTS:
        edges[1:] = [edge // BLOCK_EVENTS * BLOCK_EVENTS for edge in edges[1:]]
    return [*edges, window.until]


async def _edges_of_time(
    services: QueryServices, window: LogWindow, buckets: int
) -> tuple[list[datetime], list[int]]:
    """Return the instants between the buckets, and the positions of these."""
    span = window.until - window.after
    counts = services.event_counts
    recorded = await counts.instants_of((window.after + 1, window.until)) if span else {}
    first = window.since or recorded.get(window.after + 1)
    last = window.by or recorded.get(window.until)
    if first is None or last is None or first > last:
        return [], [window.after]
    count = buckets if first < last else 1
    step = (last - first) / count
    instants = [*(first + place * step for place in range(count)), last]
    inner = await counts.positions_at(instants[1:-1])
    positions = [min(max(position, window.after), window.until) for position in inner]
    return instants, [window.after, *positions, window.until]


def _counts(tally: EventTally, types: Sequence[str]) -> dict[str, object]:
    wanted = {
        name: count for name, count in tally.items() if not types or name.partition("/")[0] in types
    }
    plain = {name: count for name, count in sorted(wanted.items()) if "/" not in name}
    return {
        "events": sum(plain.values()),
        "types": plain,
        "outcomes": _kinds(wanted, "RunEnded/"),
        "rules": _kinds(wanted, "SpawnRefused/"),
    }


def _kinds(tally: EventTally, prefix: str) -> dict[str, int]:
    return {
        name.removeprefix(prefix): count
        for name, count in sorted(tally.items())
        if name.startswith(prefix)
    }
