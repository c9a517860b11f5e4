"""PostgreSQL's binary COPY format, column by column: what a driver would do value by value."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

_NULL = b"\xff\xff\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LENGTH = struct.Struct(">i").pack
_SHORT = struct.Struct(">ih").pack
_INT = struct.Struct(">ii").pack
_LONG = struct.Struct(">iq").pack

Encode = Callable[[Iterable[Any]], list[bytes]]


def _texts(values: Iterable[str | None]) -> list[bytes]:
    encoded = [value if value is None else value.encode() for value in values]
    return _bytes(encoded)


def _bytes(values: Iterable[bytes | None]) -> list[bytes]:
    return [_NULL if value is None else _LENGTH(len(value)) + value for value in values]


def _jsons(values: Iterable[str | None]) -> list[bytes]:
    return _texts(value if value is None else f"\x01{value}" for value in values)


def _uuids(values: Iterable[Any]) -> list[bytes]:
    return [_NULL if value is None else b"\0\0\0\x10" + value.bytes for value in values]


def _shorts(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _SHORT(2, value) for value in values]


def _ints(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _INT(4, value) for value in values]


def _longs(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _LONG(8, value) for value in values]


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


ENCODERS: Mapping[str, Encode] = {
    "text": _texts,
    "bytea": _bytes,
    "jsonb": _jsons,
    "uuid": _uuids,
    "smallint": _shorts,
    "integer": _ints,
    "bigint": _longs,
    "timestamp with time zone": _instants,
}


def copied(
    kinds: Sequence[str], columns: Sequence[Sequence[Any]], *, to_come: int = 0
) -> list[bytes]:
    """The rows whose columns these are, for `COPY ... (FORMAT binary)`, without header and
    trailer. `kinds` are types as PostgreSQL's information schema names them; `to_come` is how many
    columns will be added behind."""
    start = [struct.pack(">h", len(kinds) + to_come)] * len(columns[0])
    encoded = [ENCODERS[kind](values) for kind, values in zip(kinds, columns, strict=True)]
    return list(map(b"".join, zip(start, *encoded, strict=True)))


def with_bytes(rows: Sequence[bytes], values: Iterable[bytes]) -> bytes:
    """All the rows, each with one more column of type bytea."""
    pieces = [row + _LENGTH(len(value)) + value for row, value in zip(rows, values, strict=True)]
    return b"".join(pieces)
