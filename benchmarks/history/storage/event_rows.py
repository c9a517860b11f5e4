"""Rows of events for COPY, made of the very bytes that the chain covers.

PostgreSQL's binary COPY puts a four-byte length before each field and 0xFFFFFFFF for an absent one,
as the chain does. So with the columns in the chain's order a row is what was hashed, but for three
numbers that are shorter in the table, and the two instants, which PostgreSQL counts from 2000.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from benchmarks.history.storage.tables import TABLES
from infrastructure.outbound.log.append.batch import StoredRow
from infrastructure.outbound.log.codec.binary import encoded
from infrastructure.outbound.log.codec.chain import link_hash

_YEAR_2000_MICROSECONDS = 946_684_800_000_000
_NUMBER_BYTES = 12
_LENGTH_BYTES = 4

_COUNT = struct.pack(">h", len(TABLES["events"]))
_INT = struct.Struct(">ii").pack
_SHORT = struct.Struct(">ih").pack
_LONG = struct.Struct(">iq").pack
_INSTANTS = struct.Struct(">4xq4xq").unpack_from
_TEXT_LENGTH = struct.Struct(">i").unpack_from


def event_rows(rows: Iterable[StoredRow]) -> list[bytes]:
    """The rows of `TABLES["events"]`, each without its last column, the hash."""
    return [_row(row) for row in rows]


def _row(row: StoredRow) -> bytes:
    envelope, hashed = row.envelope, row.encoded
    stream_ends = _text_end(hashed, _NUMBER_BYTES)
    type_begins = stream_ends + _NUMBER_BYTES
    type_ends = _text_end(hashed, type_begins)
    ids_begin = type_ends + 3 * _NUMBER_BYTES
    state_begins = len(hashed) - _LENGTH_BYTES - len(row.state)
    writer_bytes = _LENGTH_BYTES + len(envelope.writer_version.encode())
    writer_begins = state_begins - _NUMBER_BYTES - writer_bytes
    recorded_at, occurred_at = _INSTANTS(hashed, type_ends + _NUMBER_BYTES)
    return b"".join(
        (
            _COUNT,
            hashed[:stream_ends],
            _INT(4, envelope.version),
            hashed[type_begins:type_ends],
            _SHORT(2, envelope.type_version),
            _LONG(8, recorded_at - _YEAR_2000_MICROSECONDS),
            _LONG(8, occurred_at - _YEAR_2000_MICROSECONDS),
            hashed[ids_begin : writer_begins - _NUMBER_BYTES],
            _INT(4, envelope.provenance.config_revision),
            hashed[writer_begins:],
        )
    )


def _text_end(hashed: bytes, at: int) -> int:
    """Where a text ends whose length stands there. None of these is absent."""
    (length,) = _TEXT_LENGTH(hashed, at)
    return at + _LENGTH_BYTES + int(length)


_LENGTH = struct.Struct(">i").pack


def copied(kinds: Sequence[str], columns: Sequence[Sequence[Any]]) -> bytes:
    """The rows of these columns."""
    start = [struct.pack(">h", len(kinds))] * len(columns[0])
    values = [encoded(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    return b"".join(chain.from_iterable(zip(start, *values, strict=True)))


def with_bytes(rows: Sequence[bytes], values: Iterable[bytes]) -> bytes:
    """All the rows, each with one more column of type bytea."""
    return b"".join(
        [row + _LENGTH(len(value)) + value for row, value in zip(rows, values, strict=True)]
    )


def chain_hashes(previous: bytes, rests: Iterable[bytes]) -> list[bytes]:
    """The hashes of events one after the other. `rests` are what each covers beside the hash before
    it: that is encoded where the event is made, by a process that does not know the one before."""
    hashes: list[bytes] = []
    for rest in rests:
        previous = link_hash(previous, rest)
        hashes.append(previous)
    return hashes
