"""How much happened when: the events of a part of the log, in buckets of positions or of time."""

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
    """What was recorded in a bucket: from `firstPosition` at `firstAt` up to `lastPosition` at
    `lastAt`, which are null where nothing was. `outcomes` are those of runs that ended, `rules`
    those that refused a spawn. `since` and `until` are the edges of a bucket of time: behind the
    one, and not behind the other."""

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
    """Buckets of the events behind position `after` up to position `until`. `countedTo` is null
    when all of them were counted; else what stands behind that position was not looked at."""

    by: BucketUnit
    after: int
    until: int
    counted_to: int | None
    items: list[EventBucketView]


@dataclass(frozen=True, slots=True)
class LogWindow:
    """A part of the log: what is behind position `after` and not behind `until`. `since` and `by`
    are the instants that were given for that, if any were."""

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
    """The part of the log between two as-ofs, by default all of it; `QueryError` when it ends
    before it begins. `known` are its positions, where the first page of a listing has said what a
    time ago means."""
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
            "/query/from", f"is pos:{after.position}, behind the end, pos:{until.position}"
        )
    return LogWindow(after.position, until.position, _instant(begin, now), _instant(end, now))


def _instant(text: str | None, now: datetime) -> datetime | None:
    """Return the instant that was given; None for a time ago, which each request counts anew."""
    if text is None or is_time_ago(text):
        return None
    moment = read_moment(text, now)
    return moment if isinstance(moment, datetime) else None


class CountEvents(EventParameters, LogPart, Read):
    """Parameters of `count_events`."""

    buckets: int = Field(
        BUCKETS_DEFAULT, ge=1, le=BUCKETS_MAX, description="How many buckets at most."
    )
    by: BucketUnit = Field(
        "position", description="Buckets of as many positions, or of as much time."
    )


@operation(
    "GET",
    "/v1/events/histogram",
    name="countEvents",
    tag="log",
    scope="read",
    summary="How much happened when",
    description=(
        "The events of the log between `from` and `to` in buckets of as many positions each, or of"
        " as much time, with their counts by type, by outcome of runs that ended, and by rule that"
        " refused a spawn. It takes as long for a log of millions as for a short one. With `runId`"
        " or `tree` their events are looked at one by one, 20,000 at most: `countedTo` says where"
        " that ended, and is null when all were counted. `actor` needs one of the two. Without"
        " them the token needs the pattern `*`."
    ),
    errors=("not_found",),
    command=Command(
        "event histogram",
        "Count events, outcomes and refusals over time.",
        options={
            "buckets": Option(default=24, help="How many lines at most."),
            "by": Option(default="time", help="Lines of as many events each, or of as much time."),
        },
        items="items",
        notes={"countedTo": "only counted up to position {countedTo}: go on with --from"},
    ),
)
async def count_events(
    services: QueryServices, caller: Caller, query: CountEvents
) -> Answer[HistogramView]:
    """Return the histogram of a part of the log, or of the events in it that the filters leave."""
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
    """Return the buckets of a part of the log.

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
    ends = {one for after, until in pairwise(edges) if after < until for one in (after + 1, until)}
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
                "counts of the whole log are for tokens with the pattern *; give tree or runId",
            )
        if criteria.actor is not None:
            raise invalid_value("/query/actor", "needs a runId or a tree beside it")
    elif criteria.run_id is None and criteria.tree is not None:
        caller = criteria.caller
        if not caller.sees_everything and not caller.acts_for(criteria.tree):
            raise QueryError(
                "not_permitted", "this token does not act for the session of that tree"
            )


def _edges_of_positions(window: LogWindow, buckets: int) -> list[int]:
    """Where the buckets begin and end. All have as many positions, but for what it takes that long
    ones begin at what was counted."""
    span = window.until - window.after
    count = min(buckets, span)
    edges = [window.after + place * span // count for place in range(count)] if count else []
    if count and span // count >= 2 * BLOCK_EVENTS:
        edges[1:] = [one // BLOCK_EVENTS * BLOCK_EVENTS for one in edges[1:]]
    return [*edges, window.until]


async def _edges_of_time(
    services: QueryServices, window: LogWindow, buckets: int
) -> tuple[list[datetime], list[int]]:
    """The instants between which the buckets are, and the positions of them."""
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
    positions = [min(max(one, window.after), window.until) for one in inner]
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
