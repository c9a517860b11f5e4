"""Folds one part of the streams into the tables that are being built, a committed page at a time.

How far a part is stands in `rebuilding` and moves in the transaction that writes its rows, so a
rebuild that was killed goes on behind the last whole page, and of two who fold the same part, the
second finds that it has moved and stops.
"""

import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from application.projections.fold import FOREVER, RowChanges, RowSpan
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.codec.columns import RUN_COLUMNS, SESSION_COLUMNS
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.rebuild.fold_pages import (
    PagedFold,
    StreamPart,
    TableStates,
    read_folded,
)
from infrastructure.outbound.log.schema.connections import LogConnection

# Rows of a projection as PostgreSQL's binary COPY takes them: the fastest way into a table.


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


PAGE_EVENTS = 5_000
STATES_MAX = 4_096


"""How many runs, and how many sessions, a part keeps in memory between two pages."""


RunChanges = RowChanges[UUID, bytes]
SessionChanges = RowChanges[str, bytes]


@dataclass(frozen=True, slots=True)
class Page:
    """What was committed: the rows of the events behind `after` and up to `upto`."""

    after: int
    upto: int
    runs: RunChanges
    sessions: SessionChanges


class PartTakenOver(UserError):
    """Somebody else folds this part."""


class PartFold:
    """One part on its way from `position`; `page_events` is about how many events a page has."""

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
        """Fold up to and with position `until`, and tell of each page that is committed.

        `CorruptHistory` when an event cannot be folded.
        """
        while self.position < until:
            upto = min(until, self.position + self._positions)
            page = await read_folded(
                self._connection,
                self._mapper,
                after=self.position,
                until=upto,
                limit=self._positions,
                part=self._part,
            )
            runs, sessions = await self.fold.fold(page)
            await self._store(upto, runs, sessions)
            after, self.position = self.position, upto
            yield Page(after, upto, runs, sessions)

    async def _store(self, upto: int, runs: RunChanges, sessions: SessionChanges) -> None:
        connection = self._connection
        run_rows = with_spans(runs.opened, RUN_COLUMNS)
        session_rows = with_spans(sessions.opened, SESSION_COLUMNS)
        async with connection.transaction():
            moved = await connection.execute(
                "UPDATE rebuilding SET position = %s WHERE part = %s AND position = %s",
                [upto, self._part.number, self.position],
            )
            if moved.rowcount != 1:
                raise PartTakenOver("another rebuild has taken this one over; it goes on there")
            await _close(connection, "runs_next", "run_id", "uuid", runs)
            await _close(connection, "sessions_next", "session_key", "text", sessions)
            if runs.opened:
                await copy_rows(connection, "runs_next", RUN_COLUMNS, run_rows)
            if sessions.opened:
                await copy_rows(connection, "sessions_next", SESSION_COLUMNS, session_rows)


async def _close(
    connection: LogConnection, table: str, key: str, kind: str, changes: RowChanges[Any, Any]
) -> None:
    if not changes.closed:
        return
    await connection.execute(
        f"UPDATE {table} SET to_position = t.closed FROM unnest(%b::{kind}[], %b::bigint[])"
        f" AS t (key, closed) WHERE {table}.{key} = t.key AND to_position = {FOREVER}",
        [list(changes.closed), list(changes.closed.values())],
    )
