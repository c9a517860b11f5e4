"""PostgreSQL's binary format, a column at a time: what a driver would do value by value.

The appends, the copies of a rebuild and the readings of a verification spend most of their time
between Python's values and these bytes.
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
        one = known.get(value)
        if one is None:
            assert value is not None
            since = value - _EPOCH
            microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
            one = known[value] = _LONG(8, microseconds)
        encoded.append(one)
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
"""By the names that the columns have here: the type's number and how its values are written. A
column of texts that are encoded already is `utf-8`."""


class BinaryColumn(msgspec.Struct, frozen=True):
    """The values of one column, ready to be sent as an array. Its type stands in the statement."""

    data: bytes

    @property
    def is_empty(self) -> bool:
        """Whether it is an array without values."""
        return len(self.data) == _EMPTY_BYTES


class ColumnDumper(Dumper):
    """Tells psycopg that there is nothing left to do."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: BinaryColumn) -> bytes:
        """The bytes as they are."""
        return obj.data


def encode_column(kind: str, values: Sequence[Any]) -> BinaryColumn:
    """The values as an array of a type."""
    number, encode = _TYPES[kind]
    count = len(values)
    if not count:
        return BinaryColumn(_ARRAY(0, 0, number, 0, 0)[:_EMPTY_BYTES])
    # Half of the columns of a row are empty.
    if values[0] is None and values.count(None) == count:
        return BinaryColumn(_ARRAY(1, True, number, count, 1) + _NULL * count)
    return column_of(kind, encode(values))


def column_of(kind: str, written: Sequence[bytes]) -> BinaryColumn:
    """Return values of a type that are `encoded` already as an array."""
    count = len(written)
    start = _ARRAY(1, _NULL in written, _TYPES[kind][0], count, 1)
    return BinaryColumn(start + b"".join(written))


def encode_value(kind: str, values: Sequence[Any]) -> BinaryColumn:
    """Return the only one of these values, which is not None, by itself."""
    (written,) = _TYPES[kind][1](values)
    return BinaryColumn(written[4:])


def encoded(kind: str, values: Sequence[Any]) -> list[bytes]:
    """Each value of a type behind its length in bytes, as arrays and copies hold it."""
    return _TYPES[kind][1](values)
