"""The second round trip of a batch: every row it makes, and the commit, in one pipeline."""

from collections.abc import Sequence
from typing import Any

import orjson

from application.ports.event_log import Content
from application.projections.fold import FOREVER, Changes, Span
from application.projections.run_rows import RunRow
from application.projections.session_rows import SessionRow
from infrastructure.outbound.log.batch import Batch, IdempotencyWrites, StoredRow
from infrastructure.outbound.log.connections import Connection

PREVIEW_CHARS = 200

_EVENT_COLUMNS = {
    "position": "bigint",
    "stream": "text",
    "version": "int",
    "type": "text",
    "type_version": "smallint",
    "recorded_at": "timestamptz",
    "occurred_at": "timestamptz",
    "event_id": "uuid",
    "command_id": "uuid",
    "actor_kind": "text",
    "actor_token": "text",
    "actor_session": "text",
    "causation": "uuid",
    "correlation": "text",
    "run_id": "uuid",
    "traceparent": "text",
    "config_revision": "int",
    "writer_version": "text",
    "append_last": "bigint",
    "chain_hash": "bytea",
    "state": "bytea",
}
RUN_COLUMNS = {
    "run_id": "uuid",
    "version": "int",
    "created_position": "bigint",
    "created_at": "timestamptz",
    "stage": "text",
    "outcome": "text",
    "session_id": "uuid",
    "requester": "text",
    "root": "text",
    "child_session_key": "text",
    "agent_id": "text",
    "label": "text",
    "lane": "text",
    "lane_depth": "int",
    "queued_position": "bigint",
    "holder": "text",
    "epoch": "int",
    "due_kind": "text",
    "due_at": "timestamptz",
    "inbox_position": "bigint",
    "state": "jsonb",
}
SESSION_COLUMNS = {
    "session_key": "text",
    "version": "int",
    "created_position": "bigint",
    "created_at": "timestamptz",
    "session_id": "uuid",
    "root": "text",
    "run_id": "uuid",
    "state": "jsonb",
}
_SPAN_COLUMNS = {"from_position": "bigint", "to_position": "bigint"}
_CONTENT_COLUMNS = {
    "content_id": "uuid",
    "session_id": "uuid",
    "kind": "text",
    "bytes": "int",
    "hmac": "text",
    "preview": "text",
    "body": "text",
}


def _insert(table: str, columns: dict[str, str]) -> str:
    arrays = ", ".join(f"%b::{'text' if kind == 'jsonb' else kind}[]" for kind in columns.values())
    names = ", ".join(columns)
    values = ", ".join(
        f"{name}::jsonb" if kind == "jsonb" else name for name, kind in columns.items()
    )
    return f"INSERT INTO {table} ({names}) SELECT {values} FROM unnest({arrays}) AS t ({names})"


def _close(table: str, key: str, kind: str) -> str:
    return (
        f"UPDATE {table} SET to_position = t.closed FROM unnest(%b::{kind}[], %b::bigint[])"
        f" AS t (key, closed) WHERE {table}.{key} = t.key AND to_position = {FOREVER}"
    )


INSERT_EVENTS = _insert("events", _EVENT_COLUMNS)
INSERT_RUNS = _insert("runs", RUN_COLUMNS | _SPAN_COLUMNS)
INSERT_SESSIONS = _insert("sessions", SESSION_COLUMNS | _SPAN_COLUMNS)
INSERT_CONTENTS = _insert("contents", _CONTENT_COLUMNS)
CLOSE_RUNS = _close("runs", "run_id", "uuid")
CLOSE_SESSIONS = _close("sessions", "session_key", "text")
INSERT_KEYS = (
    "INSERT INTO content_keys (session_id, key) SELECT * FROM unnest(%b::uuid[], %b::bytea[])"
    " ON CONFLICT (session_id) DO NOTHING"
)
INSERT_IDEMPOTENCY = (
    "INSERT INTO idempotency (token, method, path, key, fingerprint, run_id, kind, body,"
    " created_at) VALUES (%b, %b, %b, %b, %b, %b, %b, %b, %b)"
)
ANSWER_IDEMPOTENCY = (
    "UPDATE idempotency SET kind = %b, body = %b WHERE run_id = %b AND kind IS NULL"
)
MOVE_HEAD = "UPDATE log_head SET position = %b, recorded_at = %b, chain_hash = %b"
NOTE_COMMIT = "INSERT INTO commits (last_position, recorded_at) VALUES (%b, %b)"


async def store(connection: Connection, batch: Batch, channel: str) -> None:
    """Write the batch and commit. Nothing here is expected to fail: all was decided before."""
    async with connection.pipeline():
        await _store_beside(connection, batch)
        if batch.events:
            await connection.execute(INSERT_EVENTS, _event_arrays(batch.events))
            await store_rows(connection, batch.fold.run_rows, batch.fold.session_rows)
            await connection.execute(
                MOVE_HEAD, [batch.position, batch.recorded_at, batch.chain_hash]
            )
            await connection.execute(NOTE_COMMIT, [batch.position, batch.recorded_at])
        await connection.execute("COMMIT")
        if batch.events:
            await connection.execute("SELECT pg_notify(%s, %s)", [channel, str(batch.position)])


async def store_rows(
    connection: Connection, runs: "Changes[Any, RunRow]", sessions: "Changes[Any, SessionRow]"
) -> None:
    """End the rows that are no longer true, then insert the new ones: two statements each,
    because within one the partial unique index could see both."""
    if runs.closed:
        await connection.execute(CLOSE_RUNS, [list(runs.closed), list(runs.closed.values())])
    if runs.opened:
        await connection.execute(INSERT_RUNS, row_arrays(runs.opened, RUN_COLUMNS))
    if sessions.closed:
        await connection.execute(
            CLOSE_SESSIONS, [list(sessions.closed), list(sessions.closed.values())]
        )
    if sessions.opened:
        await connection.execute(INSERT_SESSIONS, row_arrays(sessions.opened, SESSION_COLUMNS))


async def _store_beside(connection: Connection, batch: Batch) -> None:
    if batch.keys:
        await connection.execute(
            INSERT_KEYS, [[one.session_id for one in batch.keys], [one.key for one in batch.keys]]
        )
    if batch.contents:
        await connection.execute(INSERT_CONTENTS, _content_arrays(batch.contents))
    await _store_idempotency(connection, batch.idempotency, batch)


async def _store_idempotency(
    connection: Connection, writes: IdempotencyWrites, batch: Batch
) -> None:
    for reservation, run_id, answer in writes.inserts:
        await connection.execute(
            INSERT_IDEMPOTENCY,
            [
                reservation.token,
                reservation.method,
                reservation.path,
                reservation.key,
                reservation.fingerprint,
                run_id,
                answer.kind if answer else None,
                orjson.dumps(answer.body).decode() if answer else None,
                batch.recorded_at,
            ],
        )
    for run_id, answer in writes.answers.items():
        body = orjson.dumps(answer.body).decode()
        await connection.execute(ANSWER_IDEMPOTENCY, [answer.kind, body, run_id])


def row_arrays(spans: Sequence[Span[Any]], columns: dict[str, str]) -> list[list[Any]]:
    """The spans of a projection as one array a column, `from` and `to` last."""
    arrays: list[list[Any]] = [
        [getattr(span.row, name) for span in spans] for name in columns if name != "state"
    ]
    arrays.append([span.row.state.model_dump_json(exclude_none=True) for span in spans])
    arrays.append([span.from_position for span in spans])
    arrays.append([span.to_position for span in spans])
    return arrays


def _event_arrays(rows: Sequence[StoredRow]) -> list[list[Any]]:
    arrays: list[list[Any]] = []
    for name in _EVENT_COLUMNS:
        if name == "state":
            arrays.append([row.state for row in rows])
        elif name.startswith("actor_"):
            field = name.removeprefix("actor_")
            arrays.append([getattr(row.envelope.provenance.actor, field) for row in rows])
        elif name in _PROVENANCE:
            arrays.append([getattr(row.envelope.provenance, name) for row in rows])
        else:
            arrays.append([getattr(row.envelope, name) for row in rows])
    return arrays


_PROVENANCE = {"causation", "correlation", "run_id", "traceparent", "config_revision"}


def _content_arrays(contents: Sequence[Content]) -> list[list[Any]]:
    return [
        [one.ref.id for one in contents],
        [one.session_id for one in contents],
        [one.kind for one in contents],
        [one.ref.bytes for one in contents],
        [one.ref.hmac for one in contents],
        [one.text[:PREVIEW_CHARS] for one in contents],
        [one.text for one in contents],
    ]
