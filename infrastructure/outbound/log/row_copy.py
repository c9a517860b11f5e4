"""Rows of a projection as PostgreSQL's binary COPY takes them: the fastest way into a table."""

import struct
from collections.abc import Mapping, Sequence

from application.projections.fold import RowSpan
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.schema.connections import LogConnection

_COUNT = struct.Struct(">h").pack
_SPAN = struct.Struct(">iqiq").pack


def with_spans(spans: Sequence[RowSpan[bytes]], columns: Mapping[str, str]) -> bytes:
    """Encoded rows, each with its number of columns in front and its span behind."""
    count = _COUNT(len(columns) + 2)
    pieces: list[bytes] = []
    for row, begins, ends in spans:
        pieces += (count, row, _SPAN(8, begins, 8, ends))
    return b"".join(pieces)


async def copy_rows(
    connection: LogConnection, table: str, columns: Mapping[str, str], rows: bytes
) -> None:
    """Copy rows with their spans into a table, inside the transaction that is open."""
    names = ", ".join([*columns, "from_position", "to_position"])
    statement = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for piece in (COPY_HEADER, rows, COPY_TRAILER):
            await copy.write(piece)
