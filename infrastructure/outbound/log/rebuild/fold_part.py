"""Fold of one part of the streams into the new tables, one committed page at a time.

The progress of a part is stored in `rebuilding` and advances in the transaction that writes its
rows. So a killed rebuild resumes after the last complete page. If two processes fold the same part,
the second finds that it has advanced and stops.
"""

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, Fold, RowChanges, RowSpan, StateSource
from application.projections.projection import Projection
from domain.states import STATES_MAX
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.read.fold_input import (
    FoldPage,
    StreamPart,
    TableStates,
    end_of_transaction,
    fold_page,
    read_page,
)
from infrastructure.outbound.log.schema.connections import LogConnection

_COUNT = struct.Struct(">h").pack
_SPAN = struct.Struct(">iqiq").pack


def with_spans(spans: Sequence[RowSpan[EncodedRow]], projection: Projection[Any, Any]) -> bytes:
    """Return encoded rows, each preceded by its number of columns and followed by its span."""
    count = _COUNT(len(columns_of(projection)) + len(SPAN_COLUMNS))
    pieces: list[bytes] = []
    for row, begins, ends, has_state in spans:
        encoded = row.whole() if has_state else row.without_state()
        pieces += (count, encoded, _SPAN(8, begins, 8, ends))
    return b"".join(pieces)


async def copy_rows(
    connection: LogConnection, table: str, columns: Mapping[str, str], rows: bytes
) -> None:
    """Copy rows with their spans into a table, in the open transaction."""
    names = ", ".join([*columns, *SPAN_COLUMNS])
    statement = f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)"
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for piece in (COPY_HEADER, rows, COPY_TRAILER):
            await copy.write(piece)


PAGE_EVENTS = 5_000
EncodedRows = RowChanges[Any, EncodedRow]


class PagedFold:
    """Fold of page after page in bounded memory: states that a page needs and that are not in
    memory are loaded from the source.

    `states_max` is the number of states of each kind kept between two pages.
    """

    def __init__(self, source: StateSource, *, states_max: int = STATES_MAX) -> None:
        self._source = source
        self._encoders = {projection.name: RowEncoder(projection) for projection in PROJECTIONS}
        self._fold = Fold(
            (), (), lambda projection: self._encoders[projection.name].encode, states_max=states_max
        )

    @property
    def states_count(self) -> int:
        """Return the number of states in memory."""
        return len(self._fold.runs) + len(self._fold.sessions)

    async def fold(self, page: FoldPage) -> dict[str, EncodedRows]:
        """Return the changes of encoded rows that a page makes, by projection. Pages must be given
        in order, without gaps, and consist of whole transactions.

        Raises:
            CorruptHistoryError: An event does not fit the state before it. The fold is unusable
                afterwards.
        """
        fold = self._fold
        await fold_page(fold, page, self._source)
        fold.states.shrink()
        for encoder in self._encoders.values():
            encoder.forget()
        return fold.take_rows()


@dataclass(frozen=True, slots=True)
class Page:
    """A committed page: the rows of the events after `after`, up to and including `upto`, by
    projection."""

    after: int
    upto: int
    rows: Mapping[str, EncodedRows]


class PartTakenOverError(UserError):
    """Another process folds this part."""


class PartFold:
    """Fold of one part from `position`, which ends a transaction. A page has about `page_events`
    events and ends at the end of a transaction."""

    def __init__(
        self,
        connection: LogConnection,
        part: StreamPart,
        position: int,
        *,
        page_events: int = PAGE_EVENTS,
    ) -> None:
        self._connection = connection
        self._part = part
        self._positions = page_events * part.of
        self._mapper = EventMapper()
        self.position = position
        self.fold = PagedFold(
            TableStates(connection, "runs_next", "sessions_next"), states_max=STATES_MAX
        )

    async def pages(self, until: int) -> AsyncIterator[Page]:
        """Fold up to and including position `until`, which ends a transaction. Yield each page once
        it is committed.

        Raises:
            CorruptHistoryError: An event cannot be folded.
            PartTakenOverError: Another process folds this part.
        """
        while self.position < until:
            upto = self.position + self._positions
            if upto < until:
                upto = await end_of_transaction(self._connection, upto) or upto
            upto = min(until, upto)
            page = await read_page(
                self._connection, self._mapper, after=self.position, until=upto, part=self._part
            )
            rows = await self.fold.fold(page)
            await self._store(upto, rows)
            after, self.position = self.position, upto
            yield Page(after, upto, rows)

    async def _store(self, upto: int, rows: Mapping[str, EncodedRows]) -> None:
        connection = self._connection
        encoded = {
            projection.name: with_spans(rows[projection.name].opened, projection)
            for projection in PROJECTIONS
        }
        async with connection.transaction():
            moved = await connection.execute(
                "UPDATE rebuilding SET position = %s WHERE part = %s AND position = %s",
                [upto, self._part.number, self.position],
            )
            if moved.rowcount != 1:
                raise PartTakenOverError(
                    "another process has taken over this rebuild and continues it"
                )
            await _store_rows(connection, rows, encoded)


async def _store_rows(
    connection: LogConnection, rows: Mapping[str, EncodedRows], encoded: Mapping[str, bytes]
) -> None:
    """Write the changes of a page into the new tables, in the open transaction."""
    for projection in PROJECTIONS:
        table = f"{projection.name}_next"
        await _close(connection, projection, table, rows[projection.name])
        if rows[projection.name].opened:
            await copy_rows(connection, table, columns_of(projection), encoded[projection.name])


async def _close(
    connection: LogConnection,
    projection: Projection[Any, Any],
    table: str,
    changes: EncodedRows,
) -> None:
    closed = changes.closed
    if not closed:
        return
    key = projection.key
    await connection.execute(
        f"UPDATE {table} SET to_position = t.closed, state = CASE WHEN t.keeps THEN state END"
        f" FROM unnest(%b::{columns_of(projection)[key]}[], %b::bigint[], %b::boolean[])"
        f" AS t (key, closed, keeps) WHERE {table}.{key} = t.key AND to_position = {FOREVER}",
        [
            list(closed),
            list(closed.values()),
            [closed_key in changes.kept for closed_key in closed],
        ],
    )
