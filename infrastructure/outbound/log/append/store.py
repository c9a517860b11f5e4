"""Stores a batch: all its rows in one prepared statement that commits by itself."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import orjson
from psycopg import AsyncRawCursor
from psycopg.pq import TransactionStatus

from application.log.event_log import Content, StagedFile
from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, RowChanges, RowSpan
from application.projections.projection import Projection
from infrastructure.outbound.log.append.batch import Batch
from infrastructure.outbound.log.append.load import IdempotencyWrites
from infrastructure.outbound.log.codec.binary import (
    BinaryColumn,
    column_of,
    encode_column,
    encode_value,
    encoded,
)
from infrastructure.outbound.log.codec.chain import ABSENT
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of, encodings_of
from infrastructure.outbound.log.schema.connections import LogConnection

# Each run by itself, so that its index is the only possible plan. A plan made while there were few
# keys would scan all of them forever.
ANSWER_IDEMPOTENCY = (
    "UPDATE idempotency SET kind = found.kind, body = found.body FROM"
    " (SELECT t.kind, t.body, one.place"
    " FROM unnest(%b::uuid[], %b::text[], %b::text[]) AS t (run_id, kind, body)"
    " CROSS JOIN LATERAL (SELECT ctid AS place FROM idempotency AS one"
    " WHERE one.run_id = t.run_id AND one.kind IS NULL OFFSET 0) AS one) AS found"
    " WHERE idempotency.ctid = found.place"
)


async def store_answers(connection: LogConnection, writes: IdempotencyWrites) -> None:
    """Store the late answers to idempotency keys, in a separate statement because hardly any append
    has them."""
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
    """Store the staged files, in a separate statement because hardly any append has them."""
    await connection.execute(
        INSERT_STAGED,
        [
            encode_column("uuid", [file.run_id for file in staged]),
            encode_column("int", [file.ordinal for file in staged]),
            encode_column("bytea", [file.body for file in staged]),
        ],
    )


_STATE = -3
_SQL_TYPES = {"utf-8": "text"}
_EVENT_COLUMNS = {
    "position": "bigint",
    "stream": "text",
    "version": "bigint",
    "type": "text",
    "type_version": "bigint",
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
    "config_revision": "bigint",
    "writer_version": "text",
    "append_last": "bigint",
    "state": "bytea",
    "chain_hash": "bytea",
}
"""The columns with their types, in the order of the hash chain, so that the hashed bytes are the
stored bytes; the hash is last."""
_INSTANTS_AT = (5, 6)
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


def close_rows(projection: Projection[Any, Any]) -> str:
    """Return the statement that ends rows. Its values are their keys, the positions where they end,
    and whether they keep their states."""
    table, key = projection.name, projection.key
    kind = columns_of(projection)[key]
    return (
        f"UPDATE {table} SET to_position = found.closed,"
        f" state = CASE WHEN found.keeps THEN {table}.state END"
        " FROM (SELECT t.closed, t.keeps, one.ctid FROM"
        f" unnest(%b::{kind}[], %b::bigint[], %b::boolean[]) AS t (key, closed, keeps)"
        " CROSS JOIN LATERAL"
        f" (SELECT ctid FROM {table} WHERE {table}.{key} = t.key AND to_position = {FOREVER}"
        " ORDER BY from_position DESC LIMIT 1) AS one) AS found"
        f" WHERE {table}.ctid = found.ctid"
    )


def _number_placeholders(query: str) -> str:
    """Replace each `%b` with `$1`, `$2` …; psycopg would parse them at every execution, because it
    caches no query of this length."""
    first, *rest = query.split("%b")
    return first + "".join(f"${number}{text}" for number, text in enumerate(rest, 1))


INSERT_RESERVATIONS = _insert("idempotency", _RESERVATION_COLUMNS)
INSERT_KEYS = (
    "INSERT INTO content_keys (session_id, key) SELECT * FROM unnest(%b::uuid[], %b::bytea[])"
    " ON CONFLICT (session_id) DO NOTHING"
)
_ENTRY_COLUMNS = {
    "run_id": "uuid",
    "sequence": "int",
    "recorded_at": "timestamptz",
    "kind": "text",
    "body": "text",
}
ENTRY_TYPES = tuple(_ENTRY_COLUMNS.values())

# The process that made a file due writes it at once; others may take over after the delay.
INSERT_DUE_FILES = (
    "INSERT INTO transcript_files (run_id, is_archived, due_at)"
    " SELECT t.run_id, t.is_archived, statement_timestamp() + interval '5 seconds'"
    " FROM unnest(%b::uuid[], %b::boolean[]) AS t (run_id, is_archived)"
    " ON CONFLICT (run_id) DO UPDATE"
    " SET is_archived = excluded.is_archived, due_at = excluded.due_at, attempts = 0"
)
MOVE_HEAD = "UPDATE log_head SET position = %b, recorded_at = %b, chain_hash = %b"
NOTE_COMMIT = "INSERT INTO commits (last_position, recorded_at) VALUES (%b, %b)"

_ENCODINGS = {
    projection.name: {**encodings_of(projection)} | SPAN_COLUMNS for projection in PROJECTIONS
}
_INSERTED: Mapping[str, Mapping[str, str]] = {
    "idempotency": _RESERVATION_COLUMNS,
    "contents": CONTENT_COLUMNS,
    "transcript_entries": _ENTRY_COLUMNS,
    **_ENCODINGS,
    "events": _EVENT_COLUMNS,
}
"""Tables that a batch only inserts into, with the encoding of each column."""
_OTHERS: Mapping[str, str] = {
    "keys": INSERT_KEYS,
    "files": INSERT_DUE_FILES,
    "head": MOVE_HEAD,
    "commit": NOTE_COMMIT,
    **{f"{projection.name} closed": close_rows(projection) for projection in PROJECTIONS},
}
"""The other statements of a batch, by name."""
SHAPES_MAX = 48
"""A connection keeps the plan of each shape. Once this many exist, further shapes are stored as the
fullest one."""


class StatementPart(NamedTuple):
    """Part of the statement: a name of `_OTHERS`, or a table with its non-empty columns.

    The values of a single row are separate parameters. Those of several rows are one array per
    column, which the database turns into a table.
    """

    name: str
    columns: tuple[str, ...] = ()
    is_single: bool = False


Shape = tuple[StatementPart, ...]
FULLEST: Shape = (
    *(StatementPart(name) for name in _OTHERS),
    *(StatementPart(table, tuple(columns)) for table, columns in _INSERTED.items()),
)
_shapes: set[Shape] = {FULLEST}


@cache
def store_query(shape: Shape) -> str:
    """Return the statement that stores a batch of this shape; its last part inserts the events.

    It is one statement, because each statement costs the driver as much as its rows cost the
    database. It omits empty parts, because the database prepares every array before it looks
    inside.
    """
    *parts, events = ((part, _part_query(part)) for part in shape)
    preceding = ", ".join(f'"{part.name} part" AS ({query})' for part, query in parts)
    return _number_placeholders(f"WITH {preceding} {events[1]}")


def _part_query(part: StatementPart) -> str:
    if part.name in _OTHERS:
        return _OTHERS[part.name]
    kinds = {name: _SQL_TYPES.get(kind, kind) for name, kind in _INSERTED[part.name].items()}
    if part.is_single:
        values = ", ".join(f"%b::{kinds[name]}" for name in part.columns)
        return f"INSERT INTO {part.name} ({', '.join(part.columns)}) SELECT {values}"
    return _insert(part.name, {name: kinds[name] for name in part.columns})


def is_in_transaction(connection: LogConnection) -> bool:
    """Return True if a transaction is open."""
    return connection.info.transaction_status != TransactionStatus.IDLE


async def store(connection: LogConnection, batch: Batch) -> None:
    """Write the batch and commit. No failure is expected: every decision was made before."""
    is_more = bool(batch.staged or batch.idempotency.answers)
    if is_more and not is_in_transaction(connection):
        await connection.execute("BEGIN")
    if batch.staged:
        await store_staged(connection, batch.staged)
    if batch.events:
        await AsyncRawCursor(connection).execute(*store_statement(batch), prepare=True)
    elif batch.idempotency.inserts:
        await connection.execute(INSERT_RESERVATIONS, _reservation_columns(batch))
    # After the reservations: an answered key may have been reserved in this batch.
    if batch.idempotency.answers:
        await store_answers(connection, batch.idempotency)
    if is_in_transaction(connection):
        await connection.execute("COMMIT")


async def notify(connection: LogConnection, channel: str, position: int) -> None:
    """Notify other processes of the log's new end.

    Call it after the commit, not in the transaction: a notifying transaction holds a cluster-wide
    lock while it waits for the disk.
    """
    await connection.execute("SELECT pg_notify(%s, %s)", [channel, str(position)])


def store_statement(batch: Batch) -> tuple[str, list[Any]]:
    """Return the statement that stores a batch, and its values."""
    others = _other_parts(batch)
    rows = _inserted_rows(batch)
    shape = _shape_of(others, rows)
    if shape not in _shapes:
        if len(_shapes) < SHAPES_MAX:
            _shapes.add(shape)
        else:
            shape = FULLEST
    values: list[Any] = []
    for part in shape:
        values += others[part.name] if part.name in others else _values(part, rows[part.name])
    return store_query(shape), values


def _shape_of(
    others: Mapping[str, Sequence[Any]], rows: Mapping[str, Sequence[Sequence[Any]]]
) -> Shape:
    found = [
        StatementPart(name)
        for name, (first, *_) in others.items()
        if not (isinstance(first, BinaryColumn) and first.is_empty)
    ]
    for table, arrays in rows.items():
        count = len(arrays[0])
        if count:
            absent = ABSENT if table == "events" else None
            columns = tuple(
                name
                for name, values in zip(_INSERTED[table], arrays, strict=True)
                if values[0] is not absent or values.count(absent) < count
            )
            found.append(StatementPart(table, columns, count == 1))
    return tuple(found)


def _values(part: StatementPart, arrays: Sequence[Sequence[Any]]) -> list[BinaryColumn]:
    encode: Callable[[str, Sequence[Any]], BinaryColumn]
    if part.name == "events":
        encode = _encoded_value if part.is_single else column_of
    else:
        encode = encode_value if part.is_single else encode_column
    return [
        encode(kind, values)
        for (name, kind), values in zip(_INSERTED[part.name].items(), arrays, strict=True)
        if name in part.columns
    ]


def _encoded_value(_: str, values: Sequence[bytes]) -> BinaryColumn:
    return BinaryColumn(values[0][4:])


def _other_parts(batch: Batch) -> dict[str, Sequence[Any]]:
    """Return the values of each part of `_OTHERS`, in that order."""
    return {
        "keys": (
            encode_column("uuid", [key.session_id for key in batch.keys]),
            encode_column("bytea", [key.key for key in batch.keys]),
        ),
        "files": (
            encode_column("uuid", list(batch.due_files)),
            encode_column("boolean", list(batch.due_files.values())),
        ),
        "head": (batch.position, batch.recorded_at, batch.chain_hash),
        "commit": (batch.position, batch.recorded_at),
        **{
            f"{projection.name} closed": closed_columns(batch.rows[projection.name], projection)
            for projection in PROJECTIONS
        },
    }


def closed_columns(
    changes: RowChanges[Any, Any], projection: Projection[Any, Any]
) -> tuple[BinaryColumn, ...]:
    """Return the values of `close_rows`."""
    return (
        encode_column(columns_of(projection)[projection.key], list(changes.closed)),
        encode_column("bigint", list(changes.closed.values())),
        encode_column("boolean", [key in changes.kept for key in changes.closed]),
    )


def _inserted_rows(batch: Batch) -> dict[str, Sequence[Sequence[Any]]]:
    """Return the columns of each table of `_INSERTED`, in that order."""
    rows: dict[str, Sequence[Sequence[Any]]] = {
        "idempotency": _reservation_arrays(batch),
        "contents": _content_arrays(batch.contents),
        "transcript_entries": _entry_arrays(batch),
    }
    for projection in PROJECTIONS:
        arrays = row_arrays(batch.rows[projection.name].opened, projection)
        # The state is the last column before the two columns of the span.
        batch.state_bytes[projection.name] = [len(state or b"") for state in arrays[_STATE]]
        rows[projection.name] = arrays
    rows["events"] = _event_arrays(batch)
    return rows


def _event_arrays(batch: Batch) -> list[Sequence[bytes]]:
    """Return the columns of the events with each value encoded as the chain hashes it."""
    arrays: list[Sequence[bytes]] = [*zip(*(row.fields for row in batch.events), strict=True)]
    # Encode the instants again: PostgreSQL counts them from another year.
    first = batch.events[0].envelope
    for place, instant in zip(_INSTANTS_AT, (first.recorded_at, first.occurred_at), strict=True):
        arrays[place] = encoded("timestamptz", [instant]) * len(batch.events)
    return [*arrays, encoded("bytea", [row.envelope.chain_hash for row in batch.events])]


def _reservation_columns(batch: Batch) -> list[BinaryColumn]:
    arrays = _reservation_arrays(batch)
    return [
        encode_column(kind, values)
        for values, kind in zip(arrays, _RESERVATION_COLUMNS.values(), strict=True)
    ]


def _reservation_arrays(batch: Batch) -> list[list[Any]]:
    inserts = batch.idempotency.inserts
    return [
        [reservation.token for reservation, _, _ in inserts],
        [reservation.method for reservation, _, _ in inserts],
        [reservation.path for reservation, _, _ in inserts],
        [reservation.key for reservation, _, _ in inserts],
        [reservation.fingerprint for reservation, _, _ in inserts],
        [run_id for _, run_id, _ in inserts],
        [answer.kind if answer else None for _, _, answer in inserts],
        [orjson.dumps(answer.body).decode() if answer else None for _, _, answer in inserts],
        [batch.recorded_at for _ in inserts],
    ]


def _entry_arrays(batch: Batch) -> list[list[Any]]:
    rows = [
        (rows_of_run.run_id, sequence, instant, kind, body)
        for rows_of_run in batch.entries
        for sequence, (instant, kind, body) in enumerate(
            zip(rows_of_run.instants, rows_of_run.kinds, rows_of_run.bodies, strict=True),
            rows_of_run.first,
        )
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(_ENTRY_COLUMNS)
    return [list(values) for values in columns]


def row_arrays(spans: Sequence[RowSpan[Any]], projection: Projection[Any, Any]) -> list[list[Any]]:
    """Return the rows of a projection as one array per column, `from` and `to` last. A state is
    bytes, or None if the row is stored without it."""
    columns = columns_of(projection)
    if not spans:
        return [[] for _ in (*columns, *SPAN_COLUMNS)]
    arrays: list[list[Any]] = [
        list(values) for values in zip(*(span.row for span in spans), strict=True)
    ]
    if "state" in columns:
        arrays[-1] = [
            state.to_json() if span.has_state else None
            for span, state in zip(spans, arrays[-1], strict=True)
        ]
    arrays.append([span.from_position for span in spans])
    arrays.append([span.to_position for span in spans])
    return arrays


def _content_arrays(contents: Sequence[Content]) -> list[list[Any]]:
    return [
        [content.ref.id for content in contents],
        [content.session_id for content in contents],
        [content.kind for content in contents],
        [content.ref.bytes for content in contents],
        [content.text for content in contents],
    ]
