"""The first round trip of a batch: the lock, the head, and every state the batch names."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import AsyncCursor

from application.ports.event_log import Answer as StoredAnswer
from application.ports.event_log import LaneFacts, LaneQuery, Reserved, Submission
from application.projections.fold import FOREVER
from domain.run.state import Run
from domain.session.state import Session
from domain.stream import run_id_of, session_key_of
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.format import must_know
from infrastructure.outbound.log.loaded import Loaded, ReservationKey, reservation_key
from infrastructure.outbound.log.mapper import payload_object

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
RUNS = f"SELECT state::text FROM runs WHERE run_id = ANY(%b::uuid[]) AND to_position = {FOREVER}"
SESSIONS = (
    "SELECT state::text FROM sessions"
    f" WHERE session_key = ANY(%b::text[]) AND to_position = {FOREVER}"
)
RESERVED = (
    "SELECT token, method, path, key, fingerprint, run_id, kind, body FROM idempotency"
    " JOIN unnest(%b::text[], %b::text[], %b::text[], %b::text[]) AS t (token, method, path, key)"
    " USING (token, method, path, key)"
)
LANE_RUNNING = (
    "SELECT count(*) FROM runs WHERE lane = %b AND lane_depth = %b AND holder IS NOT NULL"
    f" AND to_position = {FOREVER}"
)
LANE_NEXT = (
    "SELECT state::text FROM runs WHERE lane = %b AND lane_depth = %b AND holder IS NULL"
    f" AND to_position = {FOREVER} AND stage = 'queued' ORDER BY queued_position LIMIT %b"
)


async def load(connection: Connection, submissions: Sequence[Submission[Any]]) -> Loaded:
    """Begin the transaction, take the lock and read. The transaction is left open."""
    run_ids, session_keys = _streams(submissions)
    keys = {reservation_key(one.reservation) for one in submissions if one.reservation}
    lane_queries = {one.lane for one in submissions if one.lane}
    async with connection.pipeline():
        await connection.execute("BEGIN")
        await connection.execute(LOCK)
        head = await connection.execute(HEAD)
        sessions = await connection.execute(SESSIONS, [session_keys]) if session_keys else None
        reserved = await connection.execute(RESERVED, _columns(keys)) if keys else None
        lanes = {query: await _ask_lane(connection, query) for query in lane_queries}
    # Not in the pipeline: a psycopg pipeline ends with a Flush, after which PostgreSQL counts no
    # idle time, and a process that is frozen with the lock in its hands would stop all others.
    runs = await connection.execute(RUNS, [run_ids])
    row = await head.fetchone()
    assert row is not None
    must_know(row[3])
    lane_facts = {query: await _lane_facts(*cursors) for query, cursors in lanes.items()}
    known = tuple(Run.model_validate_json(one[0]) for one in await _rows(runs))
    named = {run.run_id for run in known}
    in_line = (run for facts in lane_facts.values() for run in facts.next)
    return Loaded(
        position=row[0],
        recorded_at=row[1],
        chain_hash=row[2],
        now=row[4],
        runs=(*known, *(run for run in in_line if run.run_id not in named)),
        sessions=tuple(Session.model_validate_json(one[0]) for one in await _rows(sessions)),
        config_version=row[5],
        reserved=_reserved(await _rows(reserved), submissions),
        lanes=lane_facts,
    )


def _columns(keys: Iterable[ReservationKey]) -> list[list[str]]:
    return [list(column) for column in zip(*keys, strict=True)]


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


async def _ask_lane(
    connection: Connection, query: LaneQuery
) -> tuple[AsyncCursor[Any], AsyncCursor[Any]]:
    return (
        await connection.execute(LANE_RUNNING, [query.lane, query.depth]),
        await connection.execute(LANE_NEXT, [query.lane, query.depth, query.take]),
    )


async def _lane_facts(running: AsyncCursor[Any], following: AsyncCursor[Any]) -> LaneFacts:
    count = await running.fetchone()
    assert count is not None
    runs = tuple(Run.model_validate_json(row[0]) for row in await following.fetchall())
    return LaneFacts(count[0], runs)


async def _rows(cursor: AsyncCursor[Any] | None) -> list[Any]:
    return await cursor.fetchall() if cursor is not None else []


def _reserved(
    rows: Sequence[Any], submissions: Sequence[Submission[Any]]
) -> dict[ReservationKey, Reserved]:
    asked = {reservation_key(one.reservation) for one in submissions if one.reservation}
    found: dict[ReservationKey, Reserved] = {}
    for token, method, path, key, fingerprint, run_id, kind, body in rows:
        name = (token, method, path, key)
        if name in asked:
            answer = None
            if kind is not None:
                answer = StoredAnswer(kind, payload_object(body.encode()))
            found[name] = Reserved(bytes(fingerprint), run_id, answer)
    return found
