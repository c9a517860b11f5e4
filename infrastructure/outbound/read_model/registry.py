"""Reads of run and session rows, current or as of a position: by query, by label, by lane."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.ports.registry import (
    RESPAWNS_MAX,
    ChangedStream,
    ChangedStreams,
    InboxQuery,
    LanePlace,
    LaneState,
    LiveRuns,
    Respawn,
    RunCondition,
    RunQuery,
    StatesAsOf,
    StatusRows,
    WaitingLane,
)
from application.projections.fold import FOREVER
from application.projections.run_rows import run_row
from domain.run.lifecycle import OVER, SETTLED
from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.read.coalesced_reads import CoalescedReads
from infrastructure.outbound.log.read.events import OF_TREE
from infrastructure.outbound.log.read.fold_input import sessions_folded
from infrastructure.outbound.log.read.moments import Moment, run_at_version
from infrastructure.outbound.log.read.past_runs import PastRun
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.read_model.states import (
    OPEN_RUNS,
    OPEN_SESSIONS,
    open_states,
    runs_as_of,
)

SPAN_CLASS = "position(B'1' IN (to_position - from_position)::bit(64))"
"""SQL expression: index of the first set bit in the number of positions that a row covers; one less
means twice as many."""


_CURRENT_ROW = f"lane IS NOT NULL AND to_position = {FOREVER}"
_SAME_LANE = f"lane = places.lane AND lane_depth = places.lane_depth AND to_position = {FOREVER}"

# Step from lane to lane along the index, and in each lane no further than to the first waiting run:
# the cost must not grow with the number of waiting runs.
WAITING_LANES = (
    "WITH RECURSIVE places (lane, lane_depth) AS ("
    f" (SELECT lane, lane_depth FROM runs WHERE {_CURRENT_ROW} ORDER BY lane, lane_depth LIMIT 1)"
    " UNION ALL SELECT following.lane, following.lane_depth FROM places CROSS JOIN LATERAL"
    f" (SELECT lane, lane_depth FROM runs WHERE {_CURRENT_ROW}"
    " AND (lane, lane_depth) > (places.lane, places.lane_depth)"
    " ORDER BY lane, lane_depth LIMIT 1) AS following)"
    " SELECT lane, lane_depth,"
    f" (SELECT count(holder) FROM (SELECT holder FROM runs WHERE {_SAME_LANE}"
    " ORDER BY queued_position LIMIT %s) AS foremost) >= %s"
    f" FROM places CROSS JOIN LATERAL (SELECT FROM runs WHERE {_SAME_LANE}"
    " AND stage = 'queued' AND holder IS NULL ORDER BY queued_position LIMIT 1) AS foremost"
    " ORDER BY 1, 2"
)
"""Columns: lane, depth, and whether it is full. The values are the width of a lane, twice."""


_PLACE = "lane, lane_depth, queued_position, run_id, label, requester, holder"

# Runs that are still in a lane, and those that were then: in each possible class of lengths, only
# rows that began no further before the position than the class is long.
LANES_AS_OF = (
    f"SELECT {_PLACE} FROM runs WHERE {_CURRENT_ROW} AND from_position <= %(at)s"
    " AND run_id <> ALL(%(changed)s::uuid[]) UNION ALL"
    " SELECT one.* FROM generate_series("
    "(SELECT greatest(position(B'1' IN log_head.position::bit(64)), 3) FROM log_head), 64) AS class"
    f" CROSS JOIN LATERAL (SELECT {_PLACE} FROM runs WHERE lane IS NOT NULL"
    f" AND to_position < {FOREVER} AND {SPAN_CLASS} = class"
    " AND from_position > %(at)s - (1::bigint << (65 - class)) AND from_position <= %(at)s"
    " AND to_position > %(at)s AND run_id <> ALL(%(changed)s::uuid[]) OFFSET 0) AS one"
)
"""Columns: lane, depth and position in line, then the fields of `LanePlace`. `at` is the last
position of a transaction; `changed` are runs to leave out."""


def _newest(condition: str, first: str = "") -> str:
    return (
        "SELECT state FROM (SELECT DISTINCT ON (session_id) state, label, created_position"
        f" FROM runs WHERE {condition} AND to_position = {FOREVER} AND stage <> 'refused'"
        " ORDER BY session_id, created_position DESC) AS newest"
        f" ORDER BY {first}created_position DESC LIMIT %s"
    )


RUNS_BY_LABEL = _newest("label = ANY(%s) AND root = %s")

# Exact matches come first, so the limit never drops them.
RUNS_BY_LABEL_PREFIX = _newest("requester = %s AND starts_with(label, %s)", "label = %s DESC, ")

# Neither result column ever changes, so the newest row of a run has them as of any position.
RESPAWNS = (
    "SELECT asked.run_id, asked.position, one.run_id, one.requester"
    " FROM unnest(%s::uuid[], %s::bigint[]) AS asked (run_id, position) CROSS JOIN LATERAL"
    " (SELECT run_id, requester, created_position FROM runs"
    f" WHERE respawned_from = asked.run_id AND to_position = {FOREVER}"
    " AND created_position <= asked.position ORDER BY created_position LIMIT %s) AS one"
    " ORDER BY one.created_position"
)
"""For pairs of run and position: the runs respawned from it up to the position."""
RUNS_BY_ID = (
    "SELECT state FROM runs WHERE run_id >= %s AND run_id <= %s"
    f" AND to_position = {FOREVER} ORDER BY run_id LIMIT %s"
)
"""The values are the first and last id and the limit."""

DESCENDANTS_MAX = 10_000

# A stream is returned with the position of its first event after `after`, if it is in this page:
# the event before it must be at or before `after`. That event is looked up by its key; as a scalar
# subquery, the planner has no other choice.
_CHANGED_STREAMS = (
    "WITH page AS MATERIALIZED (SELECT stream, position, version FROM events"
    " WHERE position > %(after_cursor)s AND position <= %(until)s{of_tree}"
    " ORDER BY position LIMIT %(events_max)s),"
    " foremost AS MATERIALIZED (SELECT DISTINCT ON (stream) stream, position, version FROM page"
    " ORDER BY stream, position)"
    " SELECT NULL AS stream, count(*), max(position) FROM page UNION ALL"
    " (SELECT stream, 0, position FROM foremost WHERE COALESCE((SELECT position FROM events"
    " WHERE events.stream = foremost.stream AND events.version = foremost.version - 1), 0)"
    " <= %(after)s)"
)
CHANGED_STREAMS = _CHANGED_STREAMS.format(of_tree="")
CHANGED_STREAMS_OF_A_TREE = _CHANGED_STREAMS.format(
    of_tree=f" AND {OF_TREE.format(tree='%(tree)s')}"
)


class PostgresRegistry:
    """Registry of runs and sessions in PostgreSQL; implements `Registry`."""

    def __init__(
        self,
        pool: AsyncConnectionPool[LogConnection],
        remembered: StateCaches | None = None,
        is_respawned: Callable[[UUID, int], bool | None] = lambda *_: None,
    ) -> None:
        remembered = remembered or StateCaches()
        self._sessions = remembered.sessions
        self._moments = remembered.moments
        self._pool = pool
        self._open_runs = CoalescedReads(
            pool, partial(open_states, OPEN_RUNS, Run.from_json, remembered.runs)
        )
        self._past = remembered.past_runs
        self._runs_as_of = CoalescedReads(pool, partial(runs_as_of, remembered.runs, self._past))
        self._respawns = CoalescedReads(pool, _respawns_of)
        self._is_respawned = is_respawned
        self._open_sessions = CoalescedReads(
            pool,
            partial(open_states, OPEN_SESSIONS, Session.from_json, remembered.sessions),
        )

    async def _fetch(self, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        async with borrow_connection(self._pool) as connection:
            return await (await connection.execute(sql, values)).fetchall()

    async def _moment(self, position: int) -> Moment:
        known = self._moments.known(position)
        if known is not None:
            return known
        async with borrow_connection(self._pool) as connection:
            return await self._moments.find(connection, position)

    async def _runs(self, sql: str, values: Sequence[Any]) -> list[Run]:
        return [Run.from_json(row[0]) for row in await self._fetch(sql, values)]

    async def run(self, run_id: UUID, *, at: int | None = None) -> Run | None:
        """Return a run, or None."""
        if at is None:
            return await self._open_runs.get(run_id)
        moment = await self._moment(at)
        return moment.runs.get(run_id) or await self._runs_as_of.get((run_id, moment.end))

    async def run_at_version(self, run_id: UUID, version: int) -> Run | None:
        """Return a run after its first `version` events, or None if it has fewer."""
        async with borrow_connection(self._pool) as connection:
            return await run_at_version(connection, run_id, version)

    async def runs_of_session(self, child_session_key: str, *, limit: int) -> Sequence[Run]:
        """Return the runs of a child session except refused ones, newest first."""
        return await self._runs(
            f"SELECT state FROM runs WHERE child_session_key = %s AND to_position = {FOREVER}"
            " AND stage <> 'refused' ORDER BY created_position DESC LIMIT %s",
            [child_session_key, limit],
        )

    async def runs_by_label(self, tree: str, labels: Sequence[str], *, limit: int) -> Sequence[Run]:
        """Return the newest run of each session in a tree that has one of these labels, except
        refused ones."""
        return await self._runs(RUNS_BY_LABEL, [list(labels), tree, limit])

    async def runs_by_label_prefix(
        self, requester: str, prefix: str, *, limit: int
    ) -> Sequence[Run]:
        """Return the newest run of each of a requester's sessions whose label begins with the
        prefix. Exact matches come first."""
        return await self._runs(RUNS_BY_LABEL_PREFIX, [requester, prefix, prefix, limit])

    async def runs_by_id_prefix(self, prefix: str, *, limit: int) -> Sequence[Run]:
        """Return the runs whose id begins with the prefix."""
        digits = prefix.lower().replace("-", "")
        first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        found = await self._runs(RUNS_BY_ID, [first, last, limit])
        return [run for run in found if str(run.run_id).replace("-", "").startswith(digits)]

    async def runs(
        self,
        query: RunQuery,
        *,
        at: int,
        limit: int,
        after_cursor: int | None = None,
        ascending: bool = False,
    ) -> Sequence[Run]:
        """Return a page of runs, by position of creation."""
        moment = await self._moment(at)
        page = page_of_runs(query, moment, limit, after_cursor, ascending=ascending)
        return await self._page(*page, moment)

    async def _page(self, sql: str, values: Sequence[Any], moment: Moment) -> list[Run]:
        """Return the runs of a query for ids, versions and states; rows that have ended have no
        state."""
        async with borrow_connection(self._pool) as connection:
            # Prepared, because moving a timeline slider runs it on every connection at once.
            rows = await (await connection.execute(sql, values, prepare=True)).fetchall()
            ended = [
                PastRun(run_id, moment.end, version)
                for run_id, version, state in rows
                if state is None
            ]
            folded = await self._past.find(connection, ended)
        return [
            folded[run_id, moment.end] if state is None else Run.from_json(state)
            for run_id, _, state in rows
        ]

    async def respawns(self, run_id: UUID, *, at: int) -> Sequence[Respawn]:
        """Return the first runs respawned from this one, by creation. No query is needed if this
        process has followed the run up to that position and seen no respawn."""
        if self._is_respawned(run_id, at) is False:
            return ()
        return await self._respawns.get((run_id, at)) or ()

    async def session(self, key_or_id: str, *, at: int | None = None) -> Session | None:
        """Return a session by canonical key or session id, or None."""
        column, value = _session_column(key_or_id)
        key = key_or_id
        if column == "session_id":
            sql = "SELECT session_key FROM sessions WHERE session_id = %s LIMIT 1"
            rows = await self._fetch(sql, [value])
            if not rows:
                return None
            key = rows[0][0]
        if at is None:
            return await self._open_sessions.get(key)
        (found,) = await self.states((), [key], at=[at])
        return found.sessions.get(key)

    def last_seen_session(self, session_key: str) -> Session | None:
        """Return the cached session, of whatever version, or None."""
        remembered = self._sessions.known([session_key]).get(session_key)
        return remembered[1] if remembered is not None else None

    async def runs_below(self, session_key: str) -> Sequence[Run]:
        """Return the runs of all descendants of a session except refused ones: parents before
        children, siblings in order of request."""
        return await self._runs(
            f"{descendants_sql('state')} SELECT state FROM below"
            " ORDER BY depth, created_position LIMIT %s",
            [*descendants_values(session_key), DESCENDANTS_MAX],
        )

    async def descendants(self, session_key: str, *, at: int | None = None) -> tuple[int, int]:
        """Return how many runs below a session are not settled, and how many are not over."""
        moment = await self._moment(at) if at is not None else None
        rows = await self._fetch(
            f"{descendants_sql('stage', moment)}"
            " SELECT count(*) FILTER (WHERE stage <> ALL(%s)),"
            " count(*) FILTER (WHERE stage <> ALL(%s)) FROM below",
            [*descendants_values(session_key, moment), list(SETTLED), list(OVER)],
        )
        return rows[0][0], rows[0][1]

    async def inbox(self, query: InboxQuery, *, at: int, after: int, limit: int) -> Sequence[Run]:
        """Return a page of the runs in inboxes, ordered by the position of their announcement."""
        moment = await self._moment(at)
        found = await self._page(*page_of_inbox(query, moment, after, limit), moment)
        for run in moment.runs.values():
            row = run_row(run)
            place = row.parked_position if query.is_parked else row.inbox_position
            if (place or 0) > after and query.requester in (None, row.requester):
                found.append(run)
        return sorted(found, key=_inbox_position)[:limit]

    async def lanes(self, *, at: int) -> Sequence[LaneState]:
        """Return every lane that is not empty."""
        moment = await self._moment(at)
        rows = await self._fetch(LANES_AS_OF, {"at": moment.end, "changed": list(moment.runs)})
        places = [(row[0], row[1], row[2], LanePlace(*row[3:])) for row in rows]
        for run in moment.runs.values():
            row = run_row(run)
            if row.lane is not None:
                place = LanePlace(row.run_id, row.label, row.requester, row.holder)
                places.append((row.lane, row.lane_depth, row.queued_position, place))
        places.sort(key=lambda row: row[:3])
        return [
            _lane(lane, depth, [place for *_, place in lane_places])
            for (lane, depth), lane_places in groupby(places, key=lambda row: row[:2])
        ]

    async def waiting_lanes(self, *, width: int) -> Sequence[WaitingLane]:
        """Return all lanes in which a run waits to be claimed, and whether each is full at this
        width."""
        return [WaitingLane(*row) for row in await self._fetch(WAITING_LANES, [width, width])]

    async def changed_streams(
        self,
        *,
        after: int,
        until: int,
        after_cursor: int,
        events_max: int,
        tree: str | None = None,
    ) -> ChangedStreams:
        """Return the streams whose first change since `after` is at a position in (`after_cursor`,
        `until`]."""
        values = {
            "after": after,
            "until": until,
            "after_cursor": after_cursor,
            "events_max": events_max,
            "tree": tree,
        }
        sql = CHANGED_STREAMS if tree is None else CHANGED_STREAMS_OF_A_TREE
        async with borrow_connection(self._pool) as connection:
            rows = await (await connection.execute(sql, values)).fetchall()
        _, count, last = next(row for row in rows if row[0] is None)
        streams = [ChangedStream(row[0], row[2]) for row in rows if row[0] is not None]
        streams.sort(key=lambda stream: stream.position)
        return ChangedStreams(streams, last if count == events_max else until)

    async def states(
        self, run_ids: Sequence[UUID], session_keys: Sequence[str], *, at: Sequence[int]
    ) -> Sequence[StatesAsOf]:
        """Return several runs and sessions as of several positions."""
        moments = await asyncio.gather(*map(self._moment, at))
        ends = sorted({moment.end for moment in moments})
        runs, sessions = await asyncio.gather(
            self._runs_as_of.get_all((run_id, end) for end in ends for run_id in run_ids),
            self._sessions_as_of([(key, end) for end in ends for key in session_keys]),
        )
        return [
            StatesAsOf(
                {
                    **{run_id: run for (run_id, end), run in runs.items() if end == moment.end},
                    **{run_id: moment.runs[run_id] for run_id in run_ids if run_id in moment.runs},
                },
                {
                    **{key: found for (key, end), found in sessions.items() if end == moment.end},
                    **{key: moment.sessions[key] for key in session_keys if key in moment.sessions},
                },
            )
            for moment in moments
        ]

    async def _sessions_as_of(
        self, wanted: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], Session]:
        async with borrow_connection(self._pool) as connection:
            return await sessions_folded(connection, wanted)

    async def position_at(self, instant: datetime) -> int:
        """Return the last position recorded at or before an instant."""
        ends = self._moments.ends
        rows = await self._fetch(
            "SELECT last_position FROM commits WHERE recorded_at <= %s"
            " ORDER BY recorded_at DESC, last_position DESC LIMIT 1",
            [instant],
        )
        position = int(rows[0][0]) if rows else 0
        ends.note(position)
        return position


def page_of_runs(
    query: RunQuery,
    moment: Moment,
    limit: int,
    after_cursor: int | None,
    *,
    ascending: bool,
    columns: str = "run_id, version, state",
) -> tuple[str, list[Any]]:
    """Return the query of a page with these columns, and its values. A row that has ended has no
    state.

    The query reads an index of creation and examines only the versions of the runs that it returns.
    """
    first = f"ORDER BY created_position {'ASC' if ascending else 'DESC'} LIMIT %s"
    query, live = _without_live(query)
    sources = sources_of_runs(moment)
    given = columns
    if (len(sources) > 1 or live is not None) and "created_position" not in columns:
        given += ", created_position"
    found: list[str] = []
    all_values: list[Any] = []
    for source, source_values in sources:
        clauses, values = conditions_of_runs(query)
        clauses = ["created_position <= %s", *clauses]
        values = [moment.position, *values]
        if after_cursor is not None:
            clauses.append(f"created_position {'>' if ascending else '<'} %s")
            values.append(after_cursor)
        if live is not None:
            # By their ids: some may have been created long ago. `+ 0` and OFFSET keep the planner
            # from the index of creation.
            named = " AND ".join(
                clause.replace("created_position ", "created_position + 0 ")
                for clause in ("created_position <= %s", *clauses)
            )
            found.append(
                f"SELECT {given} FROM {source} AND run_id = ANY(%s::uuid[]) AND {named} OFFSET 0"
            )
            all_values += [*source_values, list(live.run_ids), live.position, *values]
            clauses, values = ["created_position > %s", *clauses], [live.position, *values]
        found.append(f"SELECT {given} FROM {source} AND {' AND '.join(clauses)} {first}")
        all_values += [*source_values, *values, limit]
    if len(found) == 1:
        return found[0], all_values
    # Each part by creation reads its index only up to the end of a page.
    both = " UNION ALL ".join(f"({part})" for part in found)
    return f"SELECT {columns} FROM ({both}) AS runs {first}", [*all_values, limit]


def _without_live(query: RunQuery) -> tuple[RunQuery, LiveRuns | None]:
    """Return the query without one condition of runs that were not over as of a position, and those
    runs."""
    for condition in query.conditions:
        if (condition.column, condition.comparison) == ("over_position", ">"):
            rest = tuple(other for other in query.conditions if other is not condition)
            return RunQuery(rest), condition.value
    return query, None


def page_of_inbox(
    query: InboxQuery, moment: Moment, after: int, limit: int
) -> tuple[str, list[Any]]:
    """Return the query of a page of announcements, and its values.

    It selects ids, versions and states of runs that were announced before the transaction of a
    moment and have not changed in it. It reads an index and skips the few rows of each run.
    """
    # The index of all inboxes uses an expression.
    in_one = "inbox_position" if query.requester is not None else "(inbox_position + 0)"
    column = "parked_position" if query.is_parked else in_one
    clauses, values = [f"{column} > %s", f"{column} <= %s"], list[Any]([after, moment.end])
    if query.requester is not None:
        clauses, values = ["requester = %s", *clauses], [query.requester, *values]
    sql = (
        f"SELECT run_id, version, state FROM runs WHERE {' AND '.join(clauses)}"
        " AND from_position <= %s AND to_position > %s AND run_id <> ALL(%s::uuid[])"
        f" ORDER BY {column} LIMIT %s"
    )
    return sql, [*values, moment.end, moment.end, list(moment.runs), limit]


def descendants_sql(column: str, moment: Moment | None = None) -> str:
    """Return a CTE `below` with every run below a session except refused ones: its position of
    creation, the child's key, this column and the depth. Its values are from `descendants_values`.

    A session may have been refused many thousands of times, so each step uses only the index of
    requesters, for one key at a time; the `+ 0` rules out other indexes. A continued session has
    several runs, and the runs below it are found once for each. UNION removes these duplicates,
    because the position of creation is unique.
    """
    found = " UNION ALL ".join(
        f"SELECT created_position, child_session_key, {column}"
        f" FROM {source.replace('position ', 'position + 0 ')} AND stage <> 'refused' AND {{0}}"
        for source, _ in sources_of_runs(moment)
    )
    return (
        f"WITH RECURSIVE below (created_position, child_session_key, {column}, depth) AS ("
        f" SELECT one.*, 1 FROM ({found.format('requester = %s')}) AS one UNION"
        " SELECT one.*, below.depth + 1 FROM below CROSS JOIN LATERAL"
        f" ({found.format('requester = below.child_session_key')} OFFSET 0) AS one"
        " WHERE below.depth < 64 AND below.child_session_key IS NOT NULL)"
    )


def descendants_values(session_key: str, moment: Moment | None = None) -> list[Any]:
    """Return the values of `descendants_sql`."""
    per_source = [source_values for _, source_values in sources_of_runs(moment)]
    first = [value for source_values in per_source for value in (*source_values, session_key)]
    return [*first, *(value for source_values in per_source for value in source_values)]


def sources_of_runs(moment: Moment | None) -> list[tuple[str, list[Any]]]:
    """Return the FROM clauses, up to a first condition, and their values, for the rows of runs as
    of a moment (None: now)."""
    if moment is None:
        return [(f"runs WHERE to_position = {FOREVER}", [])]
    stored = "runs WHERE from_position <= %s AND to_position > %s"
    if not moment.runs:
        return [(stored, [moment.end, moment.end])]
    return [
        (f"{stored} AND run_id <> ALL(%s)", [moment.end, moment.end, list(moment.runs)]),
        (
            "jsonb_populate_recordset(NULL::runs, %s::jsonb) AS runs WHERE true",
            [moment.run_rows],
        ),
    ]


async def _respawns_of(
    connection: LogConnection, moments: Sequence[tuple[UUID, int]]
) -> Mapping[tuple[UUID, int], Sequence[Respawn]]:
    run_ids, positions = [run_id for run_id, _ in moments], [position for _, position in moments]
    cursor = await connection.execute(RESPAWNS, [run_ids, positions, RESPAWNS_MAX])
    found: dict[tuple[UUID, int], list[Respawn]] = {}
    for run_id, position, respawn, requester in await cursor.fetchall():
        found.setdefault((run_id, position), []).append(Respawn(respawn, requester))
    return found


def _session_column(key_or_id: str) -> tuple[str, str | UUID]:
    try:
        return "session_id", UUID(key_or_id)
    except ValueError:
        return "session_key", key_or_id


_ARRAYS: Mapping[type, str] = {str: "text", int: "bigint", UUID: "uuid"}


class OuterColumn(NamedTuple):
    """Column of an outer query, as the value of a condition."""

    name: str


def conditions_of_runs(query: RunQuery) -> tuple[list[str], list[Any]]:
    """Return the conditions of a query in SQL, and their values."""
    found = [_in_sql(condition) for condition in query.conditions]
    return [clause for clause, _ in found], [value for _, values in found for value in values]


def _in_sql(condition: RunCondition) -> tuple[str, list[Any]]:
    column, comparison, value = condition.column, condition.comparison, condition.value
    if isinstance(value, OuterColumn):
        return f"{column} {comparison} {value.name}", []
    if column == "status":
        rows = [_status_rows(status) for status in value]
        values = [value for _, status_values in rows for value in status_values]
        return f"({' OR '.join(clause for clause, _ in rows) or 'false'})", values
    if column == "over_position":
        live = [value.position, list(value.run_ids)]
        if comparison == ">":
            return "(created_position > %s OR run_id = ANY(%s::uuid[]))", live
        return "created_position <= %s AND run_id <> ALL(%s::uuid[])", live
    if comparison == "any of":
        if not value:
            return "false", []
        if len(value) > 1:
            return f"{column} = ANY(%s::{_ARRAYS[type(value[0])]}[])", [list(value)]
        # Only comparison with a single value lets its index return the rows by creation.
        comparison, value = "=", value[0]
    if comparison == "begins with":
        return f"{column} ^@ ANY(%s::text[])", [list(value)]
    if comparison == "is or begins with":
        clause = f"({column} = ANY(%s::text[]) OR {column} ^@ ANY(%s::text[]))"
        return clause, [list(one) for one in value]
    return f"{column} {comparison} %s", [value]


def _status_rows(rows: StatusRows) -> tuple[str, list[Any]]:
    clause = "stage = ANY(%s::text[])"
    values: list[Any] = [list(rows.stages)]
    if rows.outcome is not None:
        clause, values = f"{clause} AND outcome = %s", [*values, rows.outcome]
    if rows.waiting is not None:
        waits = "(due_kind IS NOT DISTINCT FROM 'wait') = %s"
        clause, values = f"{clause} AND {waits}", [*values, rows.waiting]
    return f"({clause})", values


def _lane(lane: str, depth: int, places: Sequence[LanePlace]) -> LaneState:
    return LaneState(
        lane,
        depth,
        tuple(place for place in places if place.holder is not None),
        tuple(place for place in places if place.holder is None),
    )


def _inbox_position(run: Run) -> int:
    assert run.inbox is not None
    return run.inbox.position
