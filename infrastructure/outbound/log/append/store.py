"""Stores a batch: every row it makes, in one statement that commits by itself."""

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
"""In the chain's order and with its types, so that what was hashed is stored; and the hash."""
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
    """The statement that ends rows: it takes their keys, the positions where they end, and whether
    they keep their states."""
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
    """With `$1`, `$2` … in place of each `%b`: psycopg would look for them at every execution,
    because it remembers no query of this length."""
    first, *behind = query.split("%b")
    return first + "".join(f"${number}{text}" for number, text in enumerate(behind, 1))


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

_ENCODINGS = {one.name: {**encodings_of(one)} | SPAN_COLUMNS for one in PROJECTIONS}
_INSERTED: Mapping[str, Mapping[str, str]] = {
    "idempotency": _RESERVATION_COLUMNS,
    "contents": CONTENT_COLUMNS,
    "transcript_entries": _ENTRY_COLUMNS,
    **_ENCODINGS,
    "events": _EVENT_COLUMNS,
}
"""The tables into which a batch inserts rows and nothing else, and how the columns are encoded."""
_OTHERS: Mapping[str, str] = {
    "keys": INSERT_KEYS,
    "files": INSERT_DUE_FILES,
    "head": MOVE_HEAD,
    "commit": NOTE_COMMIT,
    **{f"{one.name} closed": close_rows(one) for one in PROJECTIONS},
}
"""What else a batch stores, by name."""
SHAPES_MAX = 48
"""A connection keeps the plan of each shape, and a shape beyond these is stored as the fullest."""


class Part(NamedTuple):
    """A part of the statement: a name of `_OTHERS`, or a table with the columns that are not empty.

    The values of a single row stand in the statement by themselves, the columns of several rows as
    arrays, of which the database makes a table each.
    """

    name: str
    columns: tuple[str, ...] = ()
    is_single: bool = False


Shape = tuple[Part, ...]
FULLEST: Shape = (
    *(Part(name) for name in _OTHERS),
    *(Part(table, tuple(columns)) for table, columns in _INSERTED.items()),
)
_shapes: set[Shape] = {FULLEST}


@cache
def store_query(shape: Shape) -> str:
    """Return the statement that stores a batch of this shape; the last part is of the events.

    One statement, because each costs its driver as much as its rows cost the database; and without
    that which is empty, because the database prepares every array before it looks inside.
    """
    *parts, events = ((part, _part_query(part)) for part in shape)
    made = ", ".join(f'"{part.name} part" AS ({query})' for part, query in parts)
    return _number_placeholders(f"WITH {made} {events[1]}")


def _part_query(part: Part) -> str:
    if part.name in _OTHERS:
        return _OTHERS[part.name]
    kinds = {name: _SQL_TYPES.get(kind, kind) for name, kind in _INSERTED[part.name].items()}
    if part.is_single:
        values = ", ".join(f"%b::{kinds[name]}" for name in part.columns)
        return f"INSERT INTO {part.name} ({', '.join(part.columns)}) SELECT {values}"
    return _insert(part.name, {name: kinds[name] for name in part.columns})


def is_in_transaction(connection: LogConnection) -> bool:
    """Return whether a transaction was begun."""
    return connection.info.transaction_status != TransactionStatus.IDLE


async def store(connection: LogConnection, batch: Batch) -> None:
    """Write the batch and commit. Nothing here is expected to fail: all was decided before."""
    is_more = bool(batch.staged or batch.idempotency.answers)
    if is_more and not is_in_transaction(connection):
        await connection.execute("BEGIN")
    if batch.staged:
        await store_staged(connection, batch.staged)
    if batch.events:
        await AsyncRawCursor(connection).execute(*store_statement(batch), prepare=True)
    elif batch.idempotency.inserts:
        await connection.execute(INSERT_RESERVATIONS, _reservation_columns(batch))
    # Behind the reservations: what is answered may have been reserved in this very batch.
    if batch.idempotency.answers:
        await store_answers(connection, batch.idempotency)
    if is_in_transaction(connection):
        await connection.execute("COMMIT")


async def notify(connection: LogConnection, channel: str, position: int) -> None:
    """Tell other processes how far the log goes. Behind the commit, not in it: a transaction that
    notifies holds a lock of the whole cluster while it waits for the disk."""
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
        Part(name)
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
            found.append(Part(table, columns, count == 1))
    return tuple(found)


def _values(part: Part, arrays: Sequence[Sequence[Any]]) -> list[BinaryColumn]:
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
            encode_column("uuid", [one.session_id for one in batch.keys]),
            encode_column("bytea", [one.key for one in batch.keys]),
        ),
        "files": (
            encode_column("uuid", list(batch.due_files)),
            encode_column("boolean", list(batch.due_files.values())),
        ),
        "head": (batch.position, batch.recorded_at, batch.chain_hash),
        "commit": (batch.position, batch.recorded_at),
        **{f"{one.name} closed": closed_columns(batch.rows[one.name], one) for one in PROJECTIONS},
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
    for one in PROJECTIONS:
        arrays = row_arrays(batch.rows[one.name].opened, one)
        # The state is the last column of its own, in front of the two of the span.
        batch.state_bytes[one.name] = [len(printed or b"") for printed in arrays[_STATE]]
        rows[one.name] = arrays
    rows["events"] = _event_arrays(batch)
    return rows


def _event_arrays(batch: Batch) -> list[Sequence[bytes]]:
    """Return the columns of the events, each value encoded: what the chain covers."""
    arrays: list[Sequence[bytes]] = [*zip(*(row.fields for row in batch.events), strict=True)]
    # But for the instants, which PostgreSQL counts from another year.
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


def _entry_arrays(batch: Batch) -> list[list[Any]]:
    rows = [
        (one.run_id, sequence, instant, kind, body)
        for one in batch.entries
        for sequence, (instant, kind, body) in enumerate(
            zip(one.instants, one.kinds, one.bodies, strict=True), one.first
        )
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(_ENTRY_COLUMNS)
    return [list(values) for values in columns]


def row_arrays(spans: Sequence[RowSpan[Any]], projection: Projection[Any, Any]) -> list[list[Any]]:
    """The spans of a projection as one array a column, `from` and `to` last; the state as bytes,
    or None where it is stored without."""
    columns = columns_of(projection)
    if not spans:
        return [[] for _ in (*columns, *SPAN_COLUMNS)]
    arrays: list[list[Any]] = [
        list(values) for values in zip(*(one.row for one in spans), strict=True)
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
        [one.ref.id for one in contents],
        [one.session_id for one in contents],
        [one.kind for one in contents],
        [one.ref.bytes for one in contents],
        [one.text for one in contents],
    ]
