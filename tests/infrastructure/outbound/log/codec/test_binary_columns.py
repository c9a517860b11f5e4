"""Columns in the binary format are read by psycopg as the values that they were made from."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from psycopg.adapt import Transformer
from psycopg.types.array import ArrayBinaryLoader

from infrastructure.outbound.log.codec.binary import encode_column


class Reader(ArrayBinaryLoader):
    """Reads arrays of any type: each names its own."""

    base_oid = 0


def read(kind: str, values: Sequence[Any]) -> list[Any]:
    return list(Reader(0, Transformer()).load(encode_column(kind, values).data))


NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
VALUES: list[tuple[str, Any]] = [
    ("text", "é"),
    ("bytea", b"\0x"),
    ("uuid", UUID(int=7)),
    ("smallint", -3),
    ("int", 70_000),
    ("bigint", 1 << 40),
    ("timestamptz", NOW),
    ("boolean", True),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_column_is_read_as_it_was_made(kind: str, value: Any) -> None:
    for values in ([], [value], [None], [None, None], [None, value], [value, None], (value,) * 3):
        assert read(kind, values) == list(values)
