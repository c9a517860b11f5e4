"""Rows of a projection as PostgreSQL's binary COPY takes them: the fastest way into a table."""

from collections.abc import Sequence
from typing import Any

from application.projections.fold import Span
from infrastructure.outbound.log.binary_format import COPY_HEADER, COPY_TRAILER, copied
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.storing import row_arrays

SPAN_COLUMNS = {"from_position": "bigint", "to_position": "bigint"}


def packed(spans: Sequence[Span[Any]], columns: dict[str, str]) -> bytes:
    """The spans as the rows of a binary COPY of `columns` and those of the span."""
    kinds = [*columns.values(), *SPAN_COLUMNS.values()]
    return copied(kinds, row_arrays(spans, columns))


async def copy_rows(
    connection: Connection, table: str, columns: dict[str, str], rows: bytes
) -> None:
    """Copy packed rows into a table, inside the transaction that is open."""
    names = ", ".join([*columns, *SPAN_COLUMNS])
    statement = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for piece in (COPY_HEADER, rows, COPY_TRAILER):
            await copy.write(piece)
