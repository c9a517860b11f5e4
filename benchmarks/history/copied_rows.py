"""Rows as `COPY … (FORMAT binary)` takes them, without header and trailer."""

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from infrastructure.outbound.log.codec.binary import encoded

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
