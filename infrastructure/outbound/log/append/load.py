"""Reads the facts that a batch needs and the ledger lacks, under the append lock."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from application.log.event_log import (
    LaneFacts,
    LaneQuery,
    Reservation,
    Reserved,
    StoredAnswer,
    TreeQuery,
)
from application.projections.fold import FOREVER
from application.projections.run_rows import due
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.dependencies import linked_runs
from infrastructure.outbound.log.codec.mapper import payload_object
from infrastructure.outbound.log.read.state_cache import (
    StateCaches,
    StoredState,
    marks_of,
    stored_state_columns,
)
from infrastructure.outbound.log.schema.connections import LogConnection

ReservationKey = tuple[str, str, str, str]
LaneKey = tuple[str, int]  # lane name, depth of its runs


@dataclass(frozen=True, slots=True)
class LoadedFacts:
    """The facts that a batch is decided from, true while the append lock is held. `crowded` names
    the trees with more waiting runs than are read."""

    position: int
    recorded_at: datetime
    chain_hash: bytes
    now: datetime
    runs: tuple[Run, ...]
    sessions: tuple[Session, ...]
    config_version: int
    reserved: Mapping[ReservationKey, Reserved]
    lanes: Mapping[LaneQuery, LaneFacts]
    crowded: Collection[TreeQuery] = ()
    last_entries: Mapping[UUID, int] = field(default_factory=dict)


@dataclass(slots=True)
class ReadRequest:
    """Facts to read: streams by key, reservations, lanes by name and depth, trees, and runs whose
    transcripts are to be locked and counted."""

    runs: list[UUID] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    reservations: list[ReservationKey] = field(default_factory=list)
    lanes: list[LaneKey] = field(default_factory=list)
    trees: list[TreeQuery] = field(default_factory=list)
    transcripts: list[UUID] = field(default_factory=list)


@dataclass(slots=True)
class ReadResult:
    """The facts that were read. A missing stream or reservation is not recorded."""

    runs: dict[UUID, Run] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    reserved: dict[ReservationKey, Reserved] = field(default_factory=dict)
    lanes: dict[LaneKey, LaneFacts] = field(default_factory=dict)
    waiting: list[Run] = field(default_factory=list)
    crowded: set[TreeQuery] = field(default_factory=set)
    last_entries: dict[UUID, int] = field(default_factory=dict)

    def take_waiting(self, query: TreeQuery, waiting: Sequence[Run], wanted: ReadRequest) -> None:
        """Add the waiting runs of a tree, and request the runs that they are linked with."""
        known = (run.run_id for run in waiting)
        linked = linked_runs(waiting).difference(wanted.runs, known)
        if max(len(waiting), len(linked)) > ROWS_MAX:
            self.crowded.add(query)
        else:
            self.waiting += waiting
            wanted.runs += linked


def reservation_key(reservation: Reservation) -> ReservationKey:
    """Return the identity of a request: two requests with the same key are the same request."""
    return (reservation.token, reservation.method, reservation.path, reservation.key)


@dataclass(slots=True)
class IdempotencyWrites:
    """Idempotency records to insert (with their answer, if it is known) and answers to fill in, by
    run."""

    inserts: list[tuple[Reservation, UUID | None, StoredAnswer | None]] = field(
        default_factory=list
    )
    answers: dict[UUID, StoredAnswer] = field(default_factory=dict)


ROWS_MAX = 2_000
_KINDS = ("prepare", "wait")

# Select by due work in all trees, not by tree: the rows of a tree grow with every run, and scanning
# the index of trees would take place under the lock. `root || ''` is an expression that no index
# has.
WAITING = (
    "SELECT run_id, version, from_position, state FROM runs"
    " WHERE due_kind IN ('prepare', 'wait') AND root || '' = %b"
    f" AND to_position = {FOREVER} LIMIT %b"
)


def may_wait(run: Run, root: str) -> bool:
    """Return True if the run belongs to the tree and waits for another run, or may come to."""
    is_of_tree = run.requester.root_session_key == root
    return is_of_tree and run.dependencies is not None and due(run)[0] in _KINDS


# A writer of entries holds a share of this lock while it writes. So entries read after the lock are
# complete until the append ends the run, and with it the right to write. These must be two
# statements: a single one would use the snapshot from before the wait. Asking for the last entry is
# one step in the key's index, however long the transcript is.
LOCK_TRANSCRIPTS = (
    "SELECT run_id FROM runs WHERE run_id = ANY(%b::uuid[])"
    f" AND to_position = {FOREVER} ORDER BY run_id FOR NO KEY UPDATE"
)
LAST_ENTRIES = (
    "SELECT t.run_id, one.sequence FROM unnest(%b::uuid[]) AS t (run_id) CROSS JOIN LATERAL"
    " (SELECT sequence FROM transcript_entries WHERE transcript_entries.run_id = t.run_id"
    " ORDER BY sequence DESC LIMIT 1) AS one"
)
# One key at a time, newest first: PostgreSQL keeps the plan that it made while the tables were
# small, and this order leaves it only the key's own index.
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

# A state that is cached at the recorded version is not sent again.
STATES = (
    f"SELECT ({_RESERVED}), states.* FROM (SELECT) AS once"
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
_LANE_RUNNING = (
    "SELECT count(*) FROM runs WHERE lane = %b AND lane_depth = %b AND holder IS NOT NULL"
    f" AND to_position = {FOREVER}"
)
LANE_NEXT = (
    "SELECT run_id, version, from_position, state, queued_position FROM runs"
    " WHERE lane = %b AND lane_depth = %b AND holder IS NULL"
    f" AND to_position = {FOREVER} AND stage = 'queued' ORDER BY queued_position LIMIT %b"
)
LANE = (
    f"SELECT following.*, running.* FROM ({_LANE_RUNNING}) AS running"
    f" LEFT JOIN ({LANE_NEXT}) AS following ON true ORDER BY queued_position"
)
LANE_RUNS_MAX = 128
"""At most this many waiting runs of a lane are read and cached."""


async def read(
    connection: LogConnection, wanted: ReadRequest, remembered: StateCaches
) -> ReadResult:
    """Read the wanted facts under the append lock.

    If transcripts are wanted, leave a transaction open that keeps them from growing.

    Do not use a pipeline: a psycopg pipeline ends with a Flush, after which PostgreSQL counts no
    idle time. A process frozen while holding the lock would then block all others.
    """
    found = ReadResult()
    if wanted.transcripts:
        await connection.execute("BEGIN")
        await connection.execute(LOCK_TRANSCRIPTS, [sorted(wanted.transcripts)])
        cursor = await connection.execute(LAST_ENTRIES, [wanted.transcripts])
        found.last_entries = dict.fromkeys(wanted.transcripts, 0) | dict(await cursor.fetchall())
    for query in wanted.trees:
        cursor = await connection.execute(WAITING, [query.root, ROWS_MAX + 1])
        rows = await cursor.fetchall()
        found.take_waiting(query, remembered.runs.states(rows, Run.from_json), wanted)
    if wanted.runs or wanted.sessions or wanted.reservations:
        await _read_states(connection, wanted, remembered, found)
    for place in wanted.lanes:
        cursor = await connection.execute(LANE, [*place, *place, LANE_RUNS_MAX])
        rows = await cursor.fetchall()
        runs = remembered.runs.states([row[:4] for row in rows if row[0]], Run.from_json)
        found.lanes[place] = LaneFacts(rows[0][-1], tuple(runs), len(runs) >= LANE_RUNS_MAX)
    return found


async def _read_states(
    connection: LogConnection, wanted: ReadRequest, remembered: StateCaches, found: ReadResult
) -> None:
    known_runs = remembered.runs.known(wanted.runs)
    known_sessions = remembered.sessions.known(wanted.sessions)
    cursor = await connection.execute(
        STATES,
        [
            *_columns(wanted.reservations),
            *(wanted.runs, *marks_of(wanted.runs, known_runs), remembered.runs.table),
            wanted.sessions,
            *(*marks_of(wanted.sessions, known_sessions), remembered.sessions.table),
        ],
    )
    rows = await cursor.fetchall()
    found.reserved = _reserved(rows[0][0], wanted.reservations)
    for _, run_id, key, *columns in rows:
        row = StoredState(*columns)
        if run_id is not None:
            found.runs[run_id] = remembered.runs.found(run_id, row, known_runs, Run.from_json)
        elif key is not None:
            found.sessions[key] = remembered.sessions.found(
                key, row, known_sessions, Session.from_json
            )


def _columns(keys: Collection[ReservationKey]) -> list[list[str]]:
    return [list(column) for column in zip(*keys, strict=True)] if keys else [[], [], [], []]


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
