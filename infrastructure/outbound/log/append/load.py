"""The first round trip of a batch: the lock, the head, and every state the batch names."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor

from application.log.event_log import (
    LaneFacts,
    LaneQuery,
    Reservation,
    Reserved,
    StoredAnswer,
    Submission,
    TreeQuery,
    with_follow_ups,
)
from application.projections.fold import FOREVER
from application.projections.run_rows import due
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import run_id_of, session_key_of
from infrastructure.outbound.log.codec.mapper import payload_object
from infrastructure.outbound.log.read.state_cache import (
    StateCache,
    StateCaches,
    StoredState,
    marks_of,
    stored_state_columns,
)
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import require_known_format
from infrastructure.outbound.log.schema.projection_versions import (
    NOTED_VERSIONS,
    require_known_rows,
)

ReservationKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class LoadedFacts:
    """What the first round trip brought, all of it read under the lock. `crowded` are the trees of
    which there is more than was read."""

    position: int
    recorded_at: datetime
    chain_hash: bytes
    now: datetime
    runs: tuple[Run, ...]
    sessions: tuple[Session, ...]
    config_version: int
    reserved: dict[ReservationKey, Reserved]
    lanes: dict[LaneQuery, LaneFacts]
    crowded: frozenset[TreeQuery] = frozenset()
    last_entries: Mapping[UUID, int] = field(default_factory=dict)


def reservation_key(reservation: Reservation) -> ReservationKey:
    """What makes two requests the same request."""
    return (reservation.token, reservation.method, reservation.path, reservation.key)


@dataclass(slots=True)
class IdempotencyWrites:
    """Records to insert (with their answer, if already known) and answers to fill in, by run."""

    inserts: list[tuple[Reservation, UUID | None, StoredAnswer | None]] = field(
        default_factory=list
    )
    answers: dict[UUID, StoredAnswer] = field(default_factory=dict)


ROWS_MAX = 2_000
_KINDS = ("prepare", "wait")

# By what is due alone, in all trees: what was ever in a tree is more with every run, and its index
# would be gone through under the lock. An expression is in none.
WAITING = (
    "SELECT run_id, version, from_position, state FROM runs"
    " WHERE due_kind IN ('prepare', 'wait') AND root || '' = %b"
    f" AND to_position = {FOREVER} LIMIT %b"
)
TreeCursors = dict[TreeQuery, AsyncCursor[Any]]


def may_wait(run: Run, root: str) -> bool:
    """Whether the run is of the tree, and waits or may come to wait for another."""
    is_of_tree = run.requester.root_session_key == root
    return is_of_tree and run.dependencies is not None and due(run)[0] in _KINDS


async def query_waiting_runs(
    connection: LogConnection, queries: Collection[TreeQuery]
) -> TreeCursors:
    """Ask for these trees."""
    return {
        query: await connection.execute(WAITING, [query.root, ROWS_MAX + 1]) for query in queries
    }


async def read_waiting_runs(
    cursors: TreeCursors, remembered: StateCaches
) -> tuple[Sequence[Run], frozenset[TreeQuery]]:
    """What was found, and the trees of which there is more than that."""
    runs: list[Run] = []
    crowded: set[TreeQuery] = set()
    for query, cursor in cursors.items():
        rows = await cursor.fetchall()
        if len(rows) > ROWS_MAX:
            crowded.add(query)
        else:
            runs += remembered.runs.states(rows, Run.from_json)
    return runs, frozenset(crowded)


# Whoever writes entries holds a share of this lock for as long: what is read behind it is all there
# is, until the append ends the run and with it the right to write. In one statement it would be of
# the moment before the lock was waited for. The last one is asked for, because that is one step in
# the key's index however long the transcript is.
LOCK_TRANSCRIPTS = (
    "SELECT run_id FROM runs WHERE run_id = ANY(%b::uuid[])"
    f" AND to_position = {FOREVER} ORDER BY run_id FOR NO KEY UPDATE"
)
LAST_ENTRIES = (
    "SELECT t.run_id, one.sequence FROM unnest(%b::uuid[]) AS t (run_id) CROSS JOIN LATERAL"
    " (SELECT sequence FROM transcript_entries WHERE transcript_entries.run_id = t.run_id"
    " ORDER BY sequence DESC LIMIT 1) AS one"
)
LOCK_CLASS = 0x53504C47
"""First half of the advisory lock's key; the second is the schema, so that two logs in one
database do not wait for each other."""


LOCK = f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, hashtext(current_schema()))"

# The head is read by a statement of its own: one that starts after the lock is held.
HEAD = (
    "SELECT position, recorded_at, chain_hash, format, clock_timestamp(),"
    " (SELECT coalesce(max(version), 0) FROM events WHERE stream = 'log:config')"
    " FROM log_head"
)

# The head is read behind the lock whatever the database is set to.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN = f"{_BEGIN}; {LOCK}"

# One key at a time and newest first: PostgreSQL keeps the plan that it made while the tables were
# small, and the order leaves it nothing but the key's own index.
_NEWEST = "ORDER BY from_position DESC LIMIT 1"

# Each key by itself, for the same reason.
_RESERVED = (
    "SELECT json_agg(json_build_array(token, method, path, key, encode(one.fingerprint, 'hex'),"
    " one.run_id, one.kind, one.body))"
    " FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[]) AS t (token, method, path, key)"
    " CROSS JOIN LATERAL (SELECT fingerprint, run_id, kind, body FROM idempotency WHERE"
    " (idempotency.token, idempotency.method, idempotency.path, idempotency.key)"
    " = (t.token, t.method, t.path, t.key) LIMIT 1) AS one"
)

# A state that is remembered at the version on record is not sent again.
STATES = (
    f"SELECT head.*, ({_RESERVED}), {NOTED_VERSIONS}, 'runs'::regclass::oid::bigint, "
    "'sessions'::regclass::oid::bigint,"
    " states.* FROM"
    f" ({HEAD}) AS head (position, recorded_at, chain_hash, format, now, config_version)"
    " LEFT JOIN (SELECT t.run_id, NULL AS session_key, one.* FROM"
    " unnest(%b::uuid[], %b::int[], %b::bigint[]) AS t (run_id, known, since)"
    f" CROSS JOIN LATERAL (SELECT {stored_state_columns('runs')} FROM runs"
    f" WHERE runs.run_id = t.run_id AND to_position = {FOREVER} {_NEWEST}) AS one"
    " UNION ALL SELECT NULL, t.session_key, one.* FROM"
    " unnest(%b::text[], %b::int[], %b::bigint[]) AS t (session_key, known, since)"
    f" CROSS JOIN LATERAL (SELECT {stored_state_columns('sessions')} FROM sessions"
    f" WHERE sessions.session_key = t.session_key AND to_position = {FOREVER} {_NEWEST}) AS one"
    ") AS states ON true"
)
LANE_RUNNING = (
    "SELECT count(*) FROM runs WHERE lane = %b AND lane_depth = %b AND holder IS NOT NULL"
    f" AND to_position = {FOREVER}"
)
LANE_NEXT = (
    "SELECT run_id, version, from_position, state FROM runs"
    " WHERE lane = %b AND lane_depth = %b AND holder IS NULL"
    f" AND to_position = {FOREVER} AND stage = 'queued' ORDER BY queued_position LIMIT %b"
)


async def load(
    connection: LogConnection, submissions: Sequence[Submission[Any]], remembered: StateCaches
) -> LoadedFacts:
    """Begin the transaction, take the lock and read. The transaction is left open."""
    submissions = with_follow_ups(submissions)
    run_ids, session_keys = _streams(submissions)
    keys = {reservation_key(one.reservation) for one in submissions if one.reservation}
    lane_queries = {one.lane for one in submissions if one.lane}
    tree_queries = {one.tree for one in submissions if one.tree}
    finished = sorted({one.transcript for one in submissions if one.transcript})
    lanes: dict[LaneQuery, tuple[AsyncCursor[Any], AsyncCursor[Any]]] = {}
    trees: TreeCursors = {}
    entries: AsyncCursor[Any] | None = None
    if lane_queries or tree_queries or finished:
        # With the lock in front, in one message: each statement sees what is there when it starts.
        async with connection.pipeline():
            await connection.execute(_BEGIN)
            await connection.execute(LOCK)
            lanes = {query: await _query_lane(connection, query) for query in lane_queries}
            trees = await query_waiting_runs(connection, tree_queries)
            if finished:
                await connection.execute(LOCK_TRANSCRIPTS, [finished])
                entries = await connection.execute(LAST_ENTRIES, [finished])
    else:
        # Two statements in one message, which cannot be prepared.
        await connection.execute(BEGIN, prepare=False)
    # Not in the pipeline: a psycopg pipeline ends with a Flush, after which PostgreSQL counts no
    # idle time, and a process that is frozen with the lock in its hands would stop all others.
    head, runs, sessions = await _states(connection, keys, run_ids, session_keys, remembered)
    lane_facts = {
        query: await _lane_facts(*cursors, remembered.runs) for query, cursors in lanes.items()
    }
    waiting, crowded = await read_waiting_runs(trees, remembered)
    beside = (*(run for facts in lane_facts.values() for run in facts.next), *waiting)
    return LoadedFacts(
        position=head[0],
        recorded_at=head[1],
        chain_hash=head[2],
        now=head[4],
        runs=tuple({**{run.run_id: run for run in beside}, **runs}.values()),
        sessions=tuple(sessions),
        config_version=head[5],
        reserved=_reserved(head[6], keys),
        lanes=lane_facts,
        crowded=crowded,
        last_entries=dict(await _rows(entries)),
    )


async def _states(
    connection: LogConnection,
    keys: Collection[ReservationKey],
    run_ids: list[UUID],
    session_keys: list[str],
    remembered: StateCaches,
) -> tuple[Sequence[Any], dict[UUID, Run], list[Session]]:
    """The head, and the states of the streams that are on record."""
    known_runs = remembered.runs.known(run_ids)
    known_sessions = remembered.sessions.known(session_keys)
    cursor = await connection.execute(
        STATES,
        [
            *_columns(keys),
            *(run_ids, *marks_of(run_ids, known_runs), remembered.runs.table),
            *(session_keys, *marks_of(session_keys, known_sessions), remembered.sessions.table),
        ],
    )
    rows = await cursor.fetchall()
    head = rows[0]
    require_known_format(head[3])
    require_known_rows(head[7])
    remembered.runs.of(head[8])
    remembered.sessions.of(head[9])
    runs: dict[UUID, Run] = {}
    sessions: list[Session] = []
    for row in rows:
        run_id, key, found = row[10], row[11], StoredState(*row[12:])
        if run_id is not None:
            runs[run_id] = remembered.runs.found(run_id, found, known_runs, Run.from_json)
        elif key is not None:
            sessions.append(
                remembered.sessions.found(key, found, known_sessions, Session.from_json)
            )
    return head, runs, sessions


def _columns(keys: Collection[ReservationKey]) -> list[list[str]]:
    return [list(column) for column in zip(*keys, strict=True)] if keys else [[], [], [], []]


def _streams(submissions: Sequence[Submission[Any]]) -> tuple[list[UUID], list[str]]:
    runs: set[UUID] = set()
    sessions: set[str] = set()
    for submission in submissions:
        for stream in submission.streams:
            run_id = run_id_of(stream)
            key = session_key_of(stream)
            if run_id is not None:
                runs.add(run_id)
            elif key is not None:
                sessions.add(key)
    return list(runs), list(sessions)


async def _query_lane(
    connection: LogConnection, query: LaneQuery
) -> tuple[AsyncCursor[Any], AsyncCursor[Any]]:
    return (
        await connection.execute(LANE_RUNNING, [query.lane, query.depth]),
        await connection.execute(LANE_NEXT, [query.lane, query.depth, query.take]),
    )


async def _lane_facts(
    running: AsyncCursor[Any], following: AsyncCursor[Any], memory: StateCache[UUID, Run]
) -> LaneFacts:
    count = await running.fetchone()
    assert count is not None
    runs = memory.states(await following.fetchall(), Run.from_json)
    return LaneFacts(count[0], tuple(runs))


async def _rows(cursor: AsyncCursor[Any] | None) -> list[Any]:
    return await cursor.fetchall() if cursor is not None else []


def _reserved(
    found: Sequence[Any] | None, keys: Collection[ReservationKey]
) -> dict[ReservationKey, Reserved]:
    reserved: dict[ReservationKey, Reserved] = {}
    for token, method, path, key, fingerprint, run_id, kind, body in found or ():
        name = (token, method, path, key)
        if name in keys:
            answer = None
            if kind is not None:
                answer = StoredAnswer(kind, payload_object(body.encode()))
            holder = UUID(run_id) if run_id is not None else None
            reserved[name] = Reserved(bytes.fromhex(fingerprint), holder, answer)
    return reserved
