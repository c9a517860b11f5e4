"""The second round trip of a batch: every row it makes, and the commit, in one pipeline."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import orjson
from psycopg import AsyncRawCursor

from application.log.envelope import Envelope, Provenance
from application.log.event_log import Content, StagedFile
from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, RowSpan
from application.projections.projection import Projection
from infrastructure.outbound.log.append.batch import Batch
from infrastructure.outbound.log.append.load import IdempotencyWrites
from infrastructure.outbound.log.codec.binary import BinaryColumn, encode_column
from infrastructure.outbound.log.codec.columns import (
    SPAN_COLUMNS,
    columns_of,
    encodings_of,
    ended_columns,
)
from infrastructure.outbound.log.schema.connections import LogConnection

# Each run by itself, which leaves no plan but its index: one made while there were few keys would
# go through all of them for ever.
ANSWER_IDEMPOTENCY = (
    "UPDATE idempotency SET kind = found.kind, body = found.body FROM"
    " (SELECT t.kind, t.body, one.place"
    " FROM unnest(%b::uuid[], %b::text[], %b::text[]) AS t (run_id, kind, body)"
    " CROSS JOIN LATERAL (SELECT ctid AS place FROM idempotency AS one"
    " WHERE one.run_id = t.run_id AND one.kind IS NULL OFFSET 0) AS one) AS found"
    " WHERE idempotency.ctid = found.place"
)


async def store_answers(connection: LogConnection, writes: IdempotencyWrites) -> None:
    """In a statement of its own: next to no append knows one that was left open."""
    answers = writes.answers.values()
    await connection.execute(
        ANSWER_IDEMPOTENCY,
        [
            list(writes.answers),
            [answer.kind for answer in answers],
            [orjson.dumps(answer.body).decode() for answer in answers],
        ],
    )


INSERT_STAGED = (
    "INSERT INTO staged_files (run_id, ordinal, body)"
    " SELECT * FROM unnest(%b::uuid[], %b::int[], %b::bytea[])"
)


async def store_staged(connection: LogConnection, staged: Sequence[StagedFile]) -> None:
    """In a statement of its own: next to no append has any."""
    await connection.execute(
        INSERT_STAGED,
        [
            encode_column("uuid", [one.run_id for one in staged]),
            encode_column("int", [one.ordinal for one in staged]),
            encode_column("bytea", [one.body for one in staged]),
        ],
    )


_STATE = -3
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
CONTENT_COLUMNS = {
    "content_id": "uuid",
    "session_id": "uuid",
    "kind": "text",
    "bytes": "int",
    "body": "text",
}
_RESERVATION_COLUMNS = {
    "token": "text",
    "method": "text",
    "path": "text",
    "key": "text",
    "fingerprint": "bytea",
    "run_id": "uuid",
    "kind": "text",
    "body": "text",
    "created_at": "timestamptz",
}


def _insert(table: str, columns: Mapping[str, str]) -> str:
    arrays = ", ".join(f"%b::{kind}[]" for kind in columns.values())
    names = ", ".join(columns)
    return f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays}) AS t ({names})"


def _insert_rows(projection: Projection[Any, Any]) -> str:
    return _insert(projection.name, {**columns_of(projection)} | SPAN_COLUMNS)


def close_rows(projection: Projection[Any, Any]) -> str:
    """The statement that ends rows: it takes their keys, and the positions where they end."""
    table, key = projection.name, projection.key
    kind = columns_of(projection)[key]
    return (
        f"UPDATE {table} SET to_position = found.closed{ended_columns(projection)}"
        " FROM (SELECT t.closed, one.ctid"
        f" FROM unnest(%b::{kind}[], %b::bigint[]) AS t (key, closed) CROSS JOIN LATERAL"
        f" (SELECT ctid FROM {table} WHERE {table}.{key} = t.key AND to_position = {FOREVER}"
        " ORDER BY from_position DESC LIMIT 1) AS one) AS found"
        f" WHERE {table}.ctid = found.ctid"
    )


def _number_placeholders(query: str) -> str:
    """With `$1`, `$2` … in place of each `%b`: psycopg would look for them at every execution,
    because it remembers no query of this length."""
    first, *behind = query.split("%b")
    return first + "".join(f"${number}{text}" for number, text in enumerate(behind, 1))


INSERT_EVENTS = _insert("events", _EVENT_COLUMNS)
INSERT_CONTENTS = _insert("contents", CONTENT_COLUMNS)
INSERT_RESERVATIONS = _insert("idempotency", _RESERVATION_COLUMNS)
INSERT_KEYS = (
    "INSERT INTO content_keys (session_id, key) SELECT * FROM unnest(%b::uuid[], %b::bytea[])"
    " ON CONFLICT (session_id) DO NOTHING"
)
INSERT_ENTRIES = (
    "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT * FROM unnest(%b::uuid[], %b::int[], %b::timestamptz[], %b::text[], %b::text[])"
)
ENTRY_TYPES = ("uuid", "int", "timestamptz", "text", "text")

# Whoever made them due writes them at once; others may, once that should be over.
INSERT_DUE_FILES = (
    "INSERT INTO transcript_files (run_id, is_archived, due_at)"
    " SELECT t.run_id, t.is_archived, statement_timestamp() + interval '5 seconds'"
    " FROM unnest(%b::uuid[], %b::boolean[]) AS t (run_id, is_archived)"
    " ON CONFLICT (run_id) DO UPDATE"
    " SET is_archived = excluded.is_archived, due_at = excluded.due_at, attempts = 0"
)
MOVE_HEAD = "UPDATE log_head SET position = %b, recorded_at = %b, chain_hash = %b"
NOTE_COMMIT = "INSERT INTO commits (last_position, recorded_at) VALUES (%b, %b)"

# A row may only be opened when the one before it is closed, and the parts of one statement have no
# order but the one in which they ask each other.
_ROWS = ", ".join(
    [f"{one.name}_closed AS ({close_rows(one)} RETURNING 1)" for one in PROJECTIONS]
    + [
        f"{one.name}_opened AS ({_insert_rows(one)}"
        f" WHERE (SELECT count(*) FROM {one.name}_closed) >= 0)"
        for one in PROJECTIONS
    ]
)

# One statement, because each costs its driver as much as its rows cost the database.
STORE = _number_placeholders(
    f"WITH reservations AS ({INSERT_RESERVATIONS}), keys AS ({INSERT_KEYS}),"
    f" texts AS ({INSERT_CONTENTS}), entries AS ({INSERT_ENTRIES}),"
    f" files AS ({INSERT_DUE_FILES}), head AS ({MOVE_HEAD}), commit AS ({NOTE_COMMIT}),"
    f" {_ROWS} {INSERT_EVENTS}"
)


_ENCODINGS = {one.name: {**encodings_of(one)} | SPAN_COLUMNS for one in PROJECTIONS}


async def store(connection: LogConnection, batch: Batch, channel: str) -> None:
    """Write the batch and commit. Nothing here is expected to fail: all was decided before."""
    async with connection.pipeline():
        if batch.staged:
            await store_staged(connection, batch.staged)
        if batch.events:
            await AsyncRawCursor(connection).execute(STORE, _values(batch))
        elif batch.idempotency.inserts:
            await connection.execute(INSERT_RESERVATIONS, _reservation_columns(batch))
        # Behind the reservations: what is answered may have been reserved in this very batch.
        if batch.idempotency.answers:
            await store_answers(connection, batch.idempotency)
        await connection.execute("COMMIT")
        if batch.events:
            await notify(connection, channel, batch.position)


async def notify(connection: LogConnection, channel: str, position: int) -> None:
    """Tell other processes how far the log goes. Behind the commit, not in it: a transaction that
    notifies holds a lock of the whole cluster while it waits for the disk."""
    await connection.execute("SELECT pg_notify(%s, %s)", [channel, str(position)])


def _values(batch: Batch) -> list[Any]:
    """As `STORE` takes them."""
    events = event_columns(
        [row.envelope for row in batch.events], [row.state for row in batch.events]
    )
    rows = [(one, batch.rows[one.name]) for one in PROJECTIONS]
    values = [
        *_reservation_columns(batch),
        encode_column("uuid", [one.session_id for one in batch.keys]),
        encode_column("bytea", [one.key for one in batch.keys]),
        *_columns(_content_arrays(batch.contents), CONTENT_COLUMNS),
        *_entry_columns(batch),
        encode_column("uuid", list(batch.due_files)),
        encode_column("boolean", list(batch.due_files.values())),
        *(batch.position, batch.recorded_at, batch.chain_hash),
        *(batch.position, batch.recorded_at),
    ]
    for one, changes in rows:
        values.append(encode_column(columns_of(one)[one.key], list(changes.closed)))
        values.append(encode_column("bigint", list(changes.closed.values())))
    for one, changes in rows:
        arrays = row_arrays(changes.opened, one)
        # The state is the last column of its own, in front of the two of the span.
        batch.state_bytes[one.name] = [len(printed or b"") for printed in arrays[_STATE]]
        values += _columns(arrays, _ENCODINGS[one.name])
    return [*values, *events]


def _reservation_columns(batch: Batch) -> list[BinaryColumn]:
    inserts = batch.idempotency.inserts
    arrays: list[list[Any]] = [
        [one.token for one, _, _ in inserts],
        [one.method for one, _, _ in inserts],
        [one.path for one, _, _ in inserts],
        [one.key for one, _, _ in inserts],
        [one.fingerprint for one, _, _ in inserts],
        [run_id for _, run_id, _ in inserts],
        [answer.kind if answer else None for _, _, answer in inserts],
        [orjson.dumps(answer.body).decode() if answer else None for _, _, answer in inserts],
        [batch.recorded_at for _ in inserts],
    ]
    return _columns(arrays, _RESERVATION_COLUMNS)


def _entry_columns(batch: Batch) -> list[BinaryColumn]:
    rows = [
        (one.run_id, sequence, instant, kind, body)
        for one in batch.entries
        for sequence, (instant, kind, body) in enumerate(
            zip(one.instants, one.kinds, one.bodies, strict=True), one.first
        )
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(ENTRY_TYPES)
    return [
        encode_column(kind, list(values)) for kind, values in zip(ENTRY_TYPES, columns, strict=True)
    ]


def _columns(arrays: Sequence[Sequence[Any]], kinds: Mapping[str, str]) -> list[BinaryColumn]:
    return [
        encode_column(kind, values) for values, kind in zip(arrays, kinds.values(), strict=True)
    ]


def row_arrays(spans: Sequence[RowSpan[Any]], projection: Projection[Any, Any]) -> list[list[Any]]:
    """The spans of a projection as one array a column, `from` and `to` last; the state as bytes,
    or None where a row has ended and keeps none."""
    columns = columns_of(projection)
    if not spans:
        return [[] for _ in (*columns, *SPAN_COLUMNS)]
    arrays: list[list[Any]] = [
        list(values) for values in zip(*(one.row for one in spans), strict=True)
    ]
    if "state" in columns:
        arrays[-1] = [
            state.to_json() if projection.keeps_past_states or span.to_position == FOREVER else None
            for span, state in zip(spans, arrays[-1], strict=True)
        ]
    arrays.append([span.from_position for span in spans])
    arrays.append([span.to_position for span in spans])
    return arrays


def event_columns(envelopes: Sequence[Envelope], states: Sequence[bytes]) -> list[BinaryColumn]:
    """Return events, of which there is at least one, as `INSERT_EVENTS` takes them."""
    columns = zip(*map(_envelope_row, envelopes), strict=True)
    return _columns((*columns, states), _EVENT_COLUMNS)


def _path_of(column: str) -> str:
    if column.startswith("actor_"):
        return f"provenance.actor.{column.removeprefix('actor_')}"
    return f"provenance.{column}" if column in Provenance._fields else column


_envelope_row = attrgetter(*(_path_of(name) for name in _EVENT_COLUMNS if name != "state"))
"""The columns of an event but its state, which is the last."""


def _content_arrays(contents: Sequence[Content]) -> list[list[Any]]:
    return [
        [one.ref.id for one in contents],
        [one.session_id for one in contents],
        [one.kind for one in contents],
        [one.ref.bytes for one in contents],
        [one.text for one in contents],
    ]
