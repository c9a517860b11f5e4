"""Encoder of PostgreSQL's binary format, one column at a time instead of one value at a time.

Appends, the copies of a rebuild and the reads of a verification spend most of their time on this
conversion.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from psycopg.adapt import Dumper
from psycopg.pq import Format

COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LENGTH = struct.Struct(">i").pack
_SHORT = struct.Struct(">ih").pack
_INT = struct.Struct(">ii").pack
_LONG = struct.Struct(">iq").pack
_ARRAY = struct.Struct(">iiIii").pack
_EMPTY_BYTES = 12
Encode = Callable[[Iterable[Any]], list[bytes]]


def _bytes(values: Iterable[bytes | None]) -> list[bytes]:
    return [_NULL if value is None else _LENGTH(len(value)) + value for value in values]


def _texts(values: Iterable[str | None]) -> list[bytes]:
    return [
        _NULL if value is None else _LENGTH(len(data := value.encode())) + data for value in values
    ]


def _uuids(values: Iterable[Any]) -> list[bytes]:
    return [_NULL if value is None else b"\0\0\0\x10" + value.bytes for value in values]


def _shorts(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _SHORT(2, value) for value in values]


def _ints(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _INT(4, value) for value in values]


def _longs(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _LONG(8, value) for value in values]


def _booleans(values: Iterable[bool | None]) -> list[bytes]:
    return [_NULL if value is None else b"\0\0\0\1" + bytes((value,)) for value in values]


def _instants(values: Iterable[datetime | None]) -> list[bytes]:
    known: dict[datetime | None, bytes] = {None: _NULL}
    encoded: list[bytes] = []
    for value in values:
        data = known.get(value)
        if data is None:
            assert value is not None
            since = value - _EPOCH
            microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
            data = known[value] = _LONG(8, microseconds)
        encoded.append(data)
    return encoded


_TYPES: Mapping[str, tuple[int, Encode]] = {
    "text": (25, _texts),
    "utf-8": (25, _bytes),
    "bytea": (17, _bytes),
    "uuid": (2950, _uuids),
    "smallint": (21, _shorts),
    "int": (23, _ints),
    "bigint": (20, _longs),
    "timestamptz": (1184, _instants),
    "boolean": (16, _booleans),
}
"""By column type: PostgreSQL's type oid and the encoder of its values. A `utf-8` column holds texts
that are already encoded."""


class BinaryColumn(msgspec.Struct, frozen=True):
    """Values of one column, ready to be sent as an array. The statement declares their type."""

    data: bytes

    @property
    def is_empty(self) -> bool:
        """Return True if the array has no values."""
        return len(self.data) == _EMPTY_BYTES


class ColumnDumper(Dumper):
    """Dumper that passes encoded columns through psycopg unchanged."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: BinaryColumn) -> bytes:
        """Return the encoded bytes."""
        return obj.data


def encode_column(kind: str, values: Sequence[Any]) -> BinaryColumn:
    """Return the values encoded as an array of a type."""
    number, encode = _TYPES[kind]
    count = len(values)
    if not count:
        return BinaryColumn(_ARRAY(0, 0, number, 0, 0)[:_EMPTY_BYTES])
    # Half of a row's columns are empty.
    if values[0] is None and values.count(None) == count:
        return BinaryColumn(_ARRAY(1, True, number, count, 1) + _NULL * count)
    return column_of(kind, encode(values))


def column_of(kind: str, written: Sequence[bytes]) -> BinaryColumn:
    """Return an array of values that are already encoded by `encoded`."""
    count = len(written)
    start = _ARRAY(1, _NULL in written, _TYPES[kind][0], count, 1)
    return BinaryColumn(start + b"".join(written))


def encode_value(kind: str, values: Sequence[Any]) -> BinaryColumn:
    """Return the single value of the sequence, which must not be None, encoded without an array."""
    (written,) = _TYPES[kind][1](values)
    return BinaryColumn(written[4:])


def encoded(kind: str, values: Sequence[Any]) -> list[bytes]:
    """Return each value prefixed with its length in bytes, as in arrays and copies."""
    return _TYPES[kind][1](values)
