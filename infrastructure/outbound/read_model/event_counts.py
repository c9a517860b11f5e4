"""Event counts: cumulative counts stored for each block of the log, some distance after its head.

The log is only appended to, so a count never changes. Each row follows from the log, and the table
can be emptied at any time. A query takes the last row at or before each of its positions and counts
the few events in between, so its cost does not grow with the log.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import orjson
from psycopg_pool import AsyncConnectionPool

from application.log.event_log import LogUnavailableError
from application.ports.event_counts import (
    BLOCK_EVENTS,
    CountedEvents,
    EventQuery,
    EventTally,
)
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.read.events import events_query, of_trees
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

NOTED_EVENTS = 8_192
"""The runs at work are stored after this many events; a multiple of a block."""

READ_EVENTS_MAX = 65_536
"""At most this many events are counted during a request, about 50 ms. A running server lags less;
one that has just started on a log written by others lags more for some seconds."""

EXAMINED_EVENTS_MAX = 20_000

# The bytes of an event are its JSON, in which these members never had other names.
_KIND = (
    "CASE type WHEN 'RunEnded' THEN convert_from(state, 'UTF8')::json ->> 'outcome'"
    " WHEN 'SpawnRefused' THEN convert_from(state, 'UTF8')::json ->> 'rule' END"
)
BLOCKS = (
    f"SELECT (position - 1) / %s AS block, type, {_KIND}, count(*)"
    " FROM events WHERE position > %s AND position <= %s GROUP BY 1, 2, 3"
)
"""The values are the number of events in a block, and two positions: after the first, up to and
including the second."""

LAST_COUNTED = (
    "SELECT last_position, counts::text FROM event_counts ORDER BY last_position DESC LIMIT 1"
)
COUNTED = (
    "SELECT one.last_position, one.counts::text FROM unnest(%s::bigint[]) WITH ORDINALITY"
    " AS t (position, place) LEFT JOIN LATERAL (SELECT last_position, counts FROM event_counts"
    " WHERE last_position <= t.position ORDER BY last_position DESC LIMIT 1) AS one ON true"
    " ORDER BY t.place"
)
# OFFSET 0 makes the planner look each range up by the key of the log: a generic plan would read the
# whole log once for all of them.
RANGES = (
    f"SELECT t.place, type, {_KIND}, count(*) FROM unnest(%s::bigint[], %s::bigint[])"
    " WITH ORDINALITY AS t (after, until, place) CROSS JOIN LATERAL"
    " (SELECT type, state FROM events WHERE position > t.after AND position <= t.until OFFSET 0)"
    " AS one GROUP BY 1, 2, 3"
)
INSTANTS = "SELECT position, recorded_at FROM events WHERE position = ANY(%s::bigint[])"
POSITIONS = (
    "SELECT coalesce((SELECT last_position FROM commits WHERE recorded_at <= t.instant"
    " ORDER BY recorded_at DESC, last_position DESC LIMIT 1), 0)"
    " FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS t (instant, place) ORDER BY place"
)
_STORE_COUNTS = (
    "INSERT INTO event_counts (last_position, counts) SELECT * FROM unnest(%s::bigint[],"
    " %s::json[]) ON CONFLICT (last_position) DO NOTHING"
)
LAST_NOTED = (
    "SELECT position, run_ids FROM live_runs WHERE position <= %s ORDER BY position DESC LIMIT 1"
)
BEGUN_AND_ENDED = (
    "SELECT substr(stream, 5)::uuid, type IN ('SpawnRequested', 'MessageReceived') FROM events"
    " WHERE position > %s AND position <= %s AND type IN ('SpawnRequested', 'MessageReceived',"
    " 'RunEnded', 'SpawnRefused') ORDER BY position"
)
_STORE_LIVE = (
    "INSERT INTO live_runs (position, run_ids) VALUES (%s, %s) ON CONFLICT (position) DO NOTHING"
)


class PostgresEventCounts:
    """Event counts in PostgreSQL; implements `EventCounts`.

    A row is stored for each `block_events` events. After each `noted_events`, a multiple of that,
    the runs at work are stored. For one run or tree, at most `examined_events_max` events are
    examined.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[LogConnection],
        *,
        block_events: int = BLOCK_EVENTS,
        noted_events: int = NOTED_EVENTS,
        read_events_max: int = READ_EVENTS_MAX,
        examined_events_max: int = EXAMINED_EVENTS_MAX,
    ) -> None:
        self._pool = pool
        self._block_events = block_events
        self._noted_events = noted_events
        self._read_events_max = read_events_max
        self._examined_events_max = examined_events_max

    async def count_up_to(self, position: int) -> int:
        """Count and store all complete blocks up to a position, in a transaction for every few
        thousand events. Return the last counted position."""
        async with borrow_connection(self._pool) as connection:
            counted, counts = await _last_counted(connection)
            while (end := self._next_end(counted, position)) > counted:
                async with connection.transaction():
                    counts = await self._count(connection, counts, counted, end)
                counted = end
                # Let tasks that record events run first.
                await asyncio.sleep(0)
        return counted

    async def up_to(self, positions: Sequence[int]) -> Sequence[EventTally]:
        """Return the counts at each position: from the last row before it and the events after that
        row.

        Raises:
            LogUnavailableError: Too many events are not yet counted.
        """
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(COUNTED, [list(positions)])
            rows = [(last or 0, counts or "{}") for last, counts in await cursor.fetchall()]
            after = 0
            ranges: list[tuple[int, int]] = []
            for position, (counted, _) in zip(positions, rows, strict=True):
                ranges.append((max(counted, min(after, position)), position))
                after = position
            self._require_few(ranges, rows)
            read = await _count_ranges(connection, ranges)
        found: list[Counter[str]] = []
        for (start, _), (counted, counts), tally in zip(ranges, rows, read, strict=True):
            # Count from its own row, or, if there is none since, from the previous position.
            before = found[-1] if start > counted else Counter(orjson.loads(counts))
            found.append(before + tally)
        return found

    async def of_some(self, query: EventQuery, edges: Sequence[int]) -> CountedEvents:
        """Return the counts of a run or tree between the edges, by its index."""
        sql, values = _some(query, edges, self._examined_events_max + 1)
        async with borrow_connection(self._pool) as connection:
            rows = await (await connection.execute(sql, values)).fetchall()
        tallies: list[Counter[str]] = [Counter() for _ in pairwise(edges)]
        for place, name, kind, count, _, _ in rows:
            if count:
                _add(tallies[place - 1], name, kind, count)
        if sum(examined for *_, examined, _ in rows) <= self._examined_events_max:
            return CountedEvents(tallies, None)
        return CountedEvents(tallies, max(position for *_, position in rows))

    async def live_runs(self, position: int) -> frozenset[UUID]:
        """Return the runs that were requested and not over as of a position."""
        async with borrow_connection(self._pool) as connection:
            return frozenset(await live_runs_at(connection, position, self._read_events_max))

    async def instants_of(self, positions: Sequence[int]) -> Mapping[int, datetime]:
        """Return the times of these positions, by the key of the log."""
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(INSTANTS, [list(positions)])
            return dict(await cursor.fetchall())

    async def positions_at(self, instants: Sequence[datetime]) -> Sequence[int]:
        """Return the last position at or before each instant, by the ends of transactions."""
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(POSITIONS, [list(instants)])
            return [row[0] for row in await cursor.fetchall()]

    def _require_few(
        self, ranges: Sequence[tuple[int, int]], rows: Sequence[tuple[int, str]]
    ) -> None:
        if sum(until - after for after, until in ranges) > self._read_events_max:
            raise _not_counted_yet(rows[-1][0], ranges[-1][1])

    def _next_end(self, counted: int, position: int) -> int:
        """Return the end of the next complete blocks at `position`, at most up to where the runs at
        work are stored."""
        whole = position // self._block_events * self._block_events
        return min(whole, (counted // self._noted_events + 1) * self._noted_events)

    async def _count(
        self, connection: LogConnection, counts: Counter[str], counted: int, end: int
    ) -> Counter[str]:
        """Store the counts of each block up to `end`, and return the counts at `end`."""
        cursor = await connection.execute(BLOCKS, [self._block_events, counted, end])
        blocks: dict[int, Counter[str]] = {}
        for block, name, kind, count in await cursor.fetchall():
            _add(blocks.setdefault(block, Counter()), name, kind, count)
        if sum(map(_events_in, blocks.values())) != end - counted:
            raise CorruptHistoryError(f"some of the events {counted + 1} to {end} are missing")
        positions: list[int] = []
        texts: list[str] = []
        for block in sorted(blocks):
            counts = counts + blocks[block]
            positions.append((block + 1) * self._block_events)
            texts.append(orjson.dumps(counts, option=orjson.OPT_SORT_KEYS).decode())
        await connection.execute(_STORE_COUNTS, [positions, texts])
        if end % self._noted_events == 0:
            run_ids = await live_runs_at(connection, end)
            await connection.execute(_STORE_LIVE, [end, sorted(run_ids)])
        return counts


async def _last_counted(connection: LogConnection) -> tuple[int, Counter[str]]:
    row = await (await connection.execute(LAST_COUNTED)).fetchone()
    return (row[0], Counter(orjson.loads(row[1]))) if row is not None else (0, Counter())


def _events_in(tally: Counter[str]) -> int:
    return sum(count for name, count in tally.items() if "/" not in name)


async def live_runs_at(
    connection: LogConnection, position: int, events_max: int | None = None
) -> set[UUID]:
    """Return the runs that were requested and not over as of a position: those stored before it,
    updated by the events since.

    Raises:
        LogUnavailableError: More than `events_max` events have to be read.
    """
    noted = await (await connection.execute(LAST_NOTED, [position])).fetchone()
    after, live = (noted[0], set(noted[1])) if noted is not None else (0, set())
    if events_max is not None and position - after > events_max:
        raise _not_counted_yet(after, position)
    if position > after:
        cursor = await connection.execute(BEGUN_AND_ENDED, [after, position])
        for run_id, begins in await cursor.fetchall():
            if begins:
                live.add(run_id)
            else:
                live.discard(run_id)
    return live


def _add(tally: Counter[str], name: str, kind: str | None, count: int) -> None:
    tally[name] += count
    if kind is not None:
        tally[f"{name}/{kind}"] += count


async def _count_ranges(
    connection: LogConnection, ranges: Sequence[tuple[int, int]]
) -> list[Counter[str]]:
    """Return the counts of each range: after its first position, up to and including its second."""
    tallies: list[Counter[str]] = [Counter() for _ in ranges]
    if any(after < until for after, until in ranges):
        starts, ends = zip(*ranges, strict=True)
        cursor = await connection.execute(RANGES, [list(starts), list(ends)])
        for place, name, kind, count in await cursor.fetchall():
            _add(tallies[place - 1], name, kind, count)
    return tallies


def _not_counted_yet(counted: int, wanted: int) -> LogUnavailableError:
    return LogUnavailableError(
        f"the events of this log are still being counted, {counted} of {wanted} so far; retry in"
        " a moment"
    )


def _some(query: EventQuery, edges: Sequence[int], limit: int) -> tuple[str, list[Any]]:
    conditions: dict[str, list[Any]] = {}
    if query.tree is not None:
        clause, values = of_trees([query.tree])
        conditions[clause] = values
    # No index has the actor: filter among the examined events.
    by = "true"
    if query.actor is not None:
        by = "%s IN (actor_kind, actor_token, actor_session)"
    columns = "position, type, state, actor_kind, actor_token, actor_session"
    found, given = events_query(
        limit,
        after=edges[0],
        until=edges[-1],
        conditions=conditions,
        columns=columns,
        run_id=query.run_id,
    )
    return (
        f"SELECT width_bucket(position - 1, %s::bigint[]), type, {_KIND},"
        f" count(*) FILTER (WHERE {by}), count(*), max(position) FROM ({found}) AS one"
        " GROUP BY 1, 2, 3",
        [list(edges), *([query.actor] if query.actor is not None else []), *given],
    )
