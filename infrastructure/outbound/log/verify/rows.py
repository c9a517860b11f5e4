"""Reader of stored event rows that avoids converting them to Python values.

PostgreSQL's binary COPY puts a four-byte length before each field and 0xFFFFFFFF for an absent one,
as the hash chain does. So a row copied out with the chain's columns in its order consists of the
hashed bytes, except for the two instants, which PostgreSQL counts from the year 2000.
"""

import contextlib
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from infrastructure.outbound.log.codec.chain import YEAR_2000_MICROSECONDS, link_hash
from infrastructure.outbound.log.schema.connections import (
    CLIENT_CHECK,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    SyncLogConnection,
    crowding_advice,
    open_sync_connection,
    refusal_to_write,
    session_limits,
)

ReadConnection = SyncLogConnection
PAGE_TIMEOUT_MS = 120_000
"""Limit of a statement about one page; statements about whole tables have none."""
PAGE_ANSWER_SECONDS_MAX = 130.0
"""How long to wait for the answer about a page; it exceeds `PAGE_TIMEOUT_MS`."""


def open_read_connection(conninfo: str) -> ReadConnection:
    """Open a read-only connection outside any transaction."""
    # Every look-up is by a few keys. Without these settings, a table that was never analyzed would
    # be scanned for them.
    return open_sync_connection(
        conninfo,
        application="verify",
        answer_seconds_max=PAGE_ANSWER_SECONDS_MAX,
        settings=f"{session_limits(statement_ms=PAGE_TIMEOUT_MS, idle_ms=0)};"
        f" {CLIENT_CHECK}; SET default_transaction_read_only = on;"
        " SET enable_hashjoin = off; SET enable_mergejoin = off",
    )


@contextlib.contextmanager
def whole_table_transaction(connection: ReadConnection) -> Iterator[None]:
    """Open a transaction whose statements may read whole tables: no statement timeout in the
    database, and a longer answer timeout in the client."""
    page_answer_seconds_max = connection.answer_seconds_max
    connection.answer_seconds_max = WHOLE_TABLE_ANSWER_SECONDS_MAX
    try:
        with connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            yield
    finally:
        connection.answer_seconds_max = page_answer_seconds_max


def one_row(connection: ReadConnection, query: str, values: Any = None) -> TupleRow:
    """Return the only row of a query."""
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row


def database_error_reason(error: psycopg.Error) -> str:
    """Return one line that says why the database cannot be read. Drivers quote addresses in it, but
    no passwords.
    """
    # A long query writes temporary files, and the disk of the database may be full.
    refusal = refusal_to_write(error)
    if refusal is not None:
        return refusal
    advice = crowding_advice(error)
    if advice is not None:
        return f"the database cannot be read: {advice}"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"the database cannot be read: {lines[0][:500]}"


_COPIED = (
    "COPY (SELECT position, stream, version::bigint, type, type_version::bigint, recorded_at,"
    " occurred_at, event_id, command_id, actor_kind, actor_token, actor_session, causation,"
    " correlation, run_id, traceparent, config_revision::bigint, writer_version, append_last,"
    " state, chain_hash, octet_length(chain_hash), octet_length(state)"
    " FROM events WHERE position {where} ORDER BY position)"
    " TO STDOUT (FORMAT BINARY)"
)
_COLUMNS = 23
_MODULUS = 2**64

# Each struct begins where a text ends: it has the length of the next field and the fields of fixed
# length.
_POSITION = struct.Struct(">h4xqi")
_VERSION = struct.Struct(">4xqi")
_IDS = struct.Struct(">4xq4xq4xq4x16s4x16s")
_INSTANTS_AT = 16
_LENGTHS = struct.Struct(">4xi4xi")
_NUMBER = struct.Struct(">q")
_INSTANTS = struct.Struct(">QIQ")


class StoredEventRow(NamedTuple):
    """A row of an event. Instants are microseconds since 1970-01-01 UTC, ids are 16 bytes.
    `encoded` is the part that the chain covers, from the position to the state."""

    position: int
    stream: str
    version: int
    type: str
    type_version: int
    recorded_at: int
    event_id: bytes
    command_id: bytes
    append_last: int
    state: bytes
    chain_hash: bytes
    encoded: bytearray

    def hash_after(self, previous: bytes) -> bytes:
        """Return the hash that the event must have after one with the hash `previous`."""
        return link_hash(previous, self.encoded)

    def hash_elsewhere(self, previous: bytes, *, moved: int, append_too: bool) -> bytes:
        """Return the hash that the event would have `moved` positions further. With `append_too`,
        the end of its append moves too."""
        encoded = bytearray(self.encoded)
        _NUMBER.pack_into(encoded, 4, self.position + moved)
        if append_too:
            at = len(encoded) - len(self.state) - 4 - 8
            _NUMBER.pack_into(encoded, at, self.append_last + moved)
        return link_hash(previous, encoded)


# Build the class from a tuple directly: its constructor with named parts would take a third of the
# time of reading a row.
made_row: Callable[[tuple[Any, ...]], StoredEventRow] = partial(tuple.__new__, StoredEventRow)


def read_rows(connection: ReadConnection, first: int, last: int) -> list[StoredEventRow]:
    """Return the rows in a range of positions, in order, without the missing ones."""
    return _copied_rows(connection, f"BETWEEN {first} AND {last}")


def read_rows_at(connection: ReadConnection, positions: Sequence[int]) -> list[StoredEventRow]:
    """Return the rows at these positions, in order, without the missing ones."""
    numbers = ", ".join(str(int(position)) for position in positions)
    return _copied_rows(connection, f"= ANY(ARRAY[{numbers}]::bigint[])")


def _copied_rows(connection: ReadConnection, where: str) -> list[StoredEventRow]:
    return [_parse_row(row) for row in connection.copy_out(_COPIED.format(where=where))]


def _parse_row(row: bytes) -> StoredEventRow:
    columns, position, stream_bytes = _POSITION.unpack_from(row)
    assert columns == _COLUMNS
    at = _POSITION.size + stream_bytes
    stream = row[_POSITION.size : at].decode()
    version, type_bytes = _VERSION.unpack_from(row, at)
    at += _VERSION.size
    type_name = row[at : at + type_bytes].decode()
    at += type_bytes
    type_version, recorded, occurred, event_id, command_id = _IDS.unpack_from(row, at)
    recorded += YEAR_2000_MICROSECONDS
    occurred += YEAR_2000_MICROSECONDS
    end = len(row) - _LENGTHS.size
    hash_bytes, state_bytes = _LENGTHS.unpack_from(row, end)
    chain_hash = row[end - hash_bytes : end]
    end -= hash_bytes + 4
    state = row[end - state_bytes : end]
    (append_last,) = _NUMBER.unpack_from(row, end - state_bytes - 4 - 8)
    encoded = bytearray(row[2:end])
    # An instant manually set to infinity does not fit; it only has to become a wrong value.
    _INSTANTS.pack_into(encoded, at + _INSTANTS_AT - 2, recorded % _MODULUS, 8, occurred % _MODULUS)
    return made_row(
        (
            position,
            stream,
            version,
            type_name,
            type_version,
            recorded,
            event_id,
            command_id,
            append_last,
            state,
            chain_hash,
            encoded,
        )
    )
