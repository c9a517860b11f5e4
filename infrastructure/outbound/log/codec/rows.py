"""Encoder for the rows of a projection in PostgreSQL's binary COPY format, version after version.

A row shares most values with the previous row of the same run or session, so only the changed
columns are encoded again. The state is the exception: it is serialized as a whole, because
assembling it from the texts of its fields takes Python as long. It is serialized only when its row
is stored, because a row that has ended by then may hold none.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import compress, islice
from operator import is_not
from typing import Any, NamedTuple
from uuid import UUID

from application.projections.projection import Projection
from infrastructure.outbound.log.codec.columns import columns_of

CACHED_VALUES_MAX = 1_024
CACHED_ROWS_MAX = 4_096
"""Number of runs or sessions whose last encoded row is cached."""


_NULL = b"\xff\xff\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LENGTH = struct.Struct(">i").pack
_INT = struct.Struct(">ii").pack
_LONG = struct.Struct(">iq").pack


class EncodedRow(NamedTuple):
    """The columns in order, each a four-byte length followed by its bytes. The last column,
    `state`, is serialized later, if there is one."""

    cells: bytes
    state: Any = None

    def whole(self) -> bytes:
        """Return the row with its state."""
        if self.state is None:
            return self.cells
        text = self.state.to_json()
        return b"%b%b%b" % (self.cells, _LENGTH(len(text)), text)

    def without_state(self) -> bytes:
        """Return the row with NULL as its state."""
        return self.cells if self.state is None else self.cells + _NULL


class RowEncoder:
    """Encoder for the rows of one projection."""

    def __init__(self, projection: Projection[Any, Any]) -> None:
        columns = columns_of(projection)
        self._row_of: Callable[[Any], tuple[Any, ...]] = projection.row_of
        self._prints_state = "state" in columns
        self._encode = [_ENCODE[kind] for name, kind in columns.items() if name != "state"]
        self._places = range(len(self._encode))
        self._nothing = (None,) * len(columns), [_NULL] * len(self._encode)
        # The last row by key and its encoded columns, least recently used first.
        self._last: dict[Any, tuple[tuple[Any, ...], list[bytes]]] = {}

    def encode(self, state: Any) -> EncodedRow:
        """Return the encoded row of a state."""
        row = self._row_of(state)
        key = row[0] if isinstance(row[0], str) else row[0].int
        before, cells = self._last.pop(key, None) or (self._nothing[0], self._nothing[1].copy())
        encode = self._encode
        for place in compress(self._places, map(is_not, row, before)):
            value = row[place]
            cells[place] = _NULL if value is None else encode[place](value)
        self._last[key] = row, cells
        return EncodedRow(b"".join(cells), state if self._prints_state else None)

    @property
    def size(self) -> int:
        """Return the number of cached runs or sessions."""
        return len(self._last)

    def forget(self) -> None:
        """Evict the least recently used rows beyond `CACHED_ROWS_MAX`."""
        for key in list(islice(self._last, max(0, len(self._last) - CACHED_ROWS_MAX))):
            del self._last[key]


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _text(value: str) -> bytes:
    data = value.encode()
    return _LENGTH(len(data)) + data


def _uuid(value: UUID) -> bytes:
    return b"\0\0\0\x10" + value.bytes


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _int(value: int) -> bytes:
    return _INT(4, value)


def _long(value: int) -> bytes:
    return _LONG(8, value)


@lru_cache(maxsize=CACHED_VALUES_MAX)
def _instant(value: datetime) -> bytes:
    since = value - _EPOCH
    return _LONG(8, (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_ENCODE: Mapping[str, Callable[[Any], bytes]] = {
    "text": _text,
    "uuid": _uuid,
    "int": _int,
    "bigint": _long,
    "timestamptz": _instant,
}
