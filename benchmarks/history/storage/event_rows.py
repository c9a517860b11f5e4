"""Rows of events for COPY, made from the bytes that the chain covers.

PostgreSQL's binary COPY puts a four-byte length before each field and 0xFFFFFFFF for an absent one,
as the chain does. With the columns in the chain's order, a row is the hashed bytes, except for
three numbers that are shorter in the table and the two instants, which PostgreSQL counts from 2000.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from benchmarks.history.storage.tables import TABLES
from infrastructure.outbound.log.append.batch import StoredRow
from infrastructure.outbound.log.codec.binary import encoded
from infrastructure.outbound.log.codec.chain import link_hash

_COUNT = struct.pack(">h", len(TABLES["events"]))
_INT = struct.Struct(">ii").pack
_SHORT = struct.Struct(">ih").pack


def event_rows(rows: Iterable[StoredRow]) -> list[bytes]:
    """Return the rows of `TABLES["events"]`, without the last column, the hash."""
    return [_row(row) for row in rows]


def _row(row: StoredRow) -> bytes:
    envelope, fields = row.envelope, list(row.fields)
    fields[2] = _INT(4, envelope.version)
    fields[4] = _SHORT(2, envelope.type_version)
    fields[5:7] = encoded("timestamptz", [envelope.recorded_at, envelope.occurred_at])
    fields[16] = _INT(4, envelope.provenance.config_revision)
    return b"".join((_COUNT, *fields))


_LENGTH = struct.Struct(">i").pack


def copied(kinds: Sequence[str], columns: Sequence[Sequence[Any]]) -> bytes:
    """Return the rows of these columns."""
    start = [struct.pack(">h", len(kinds))] * len(columns[0])
    values = [encoded(kind, column) for kind, column in zip(kinds, columns, strict=True)]
    return b"".join(chain.from_iterable(zip(start, *values, strict=True)))


def with_bytes(rows: Sequence[bytes], values: Iterable[bytes]) -> bytes:
    """Return all rows with another column of type bytea."""
    return b"".join(
        [row + _LENGTH(len(value)) + value for row, value in zip(rows, values, strict=True)]
    )


def chain_hashes(previous: bytes, rests: Iterable[bytes]) -> list[bytes]:
    """Return the hashes of consecutive events.

    `rests` are the bytes that each hash covers after the previous hash. They are encoded by
    processes that do not know the previous hash.
    """
    hashes: list[bytes] = []
    for rest in rests:
        previous = link_hash(previous, rest)
        hashes.append(previous)
    return hashes
