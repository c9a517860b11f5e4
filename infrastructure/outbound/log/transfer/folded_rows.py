"""Storage of the run and session rows that the events of an imported file fold to."""

from operator import attrgetter
from typing import Any

from application.projections.catalog import PROJECTIONS
from application.projections.fold import RowChanges
from domain.run.state import Run
from infrastructure.outbound.log.append.store import close_rows, closed_columns
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.codec.columns import SPAN_COLUMNS, columns_of
from infrastructure.outbound.log.codec.rows import EncodedRow, RowEncoder
from infrastructure.outbound.log.rebuild.fold_part import with_spans
from infrastructure.outbound.log.verify.refold import RefoldResult
from infrastructure.outbound.log.verify.rows import ReadConnection


class FoldedRows:
    """Collector of rows in transaction order, written by `store`.

    `bytes_added` is the total length of the added states as JSON since the beginning, counting the
    last state of each run and session in a page.
    """

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._folded = [
            (projection, RowEncoder(projection), attrgetter(projection.key))
            for projection in PROJECTIONS
        ]
        self.bytes_added = 0
        self._begin()

    def _begin(self) -> None:
        self._changes: dict[str, RowChanges[Any, EncodedRow]] = {
            projection.name: RowChanges() for projection in PROJECTIONS
        }

    def add(self, page: RefoldResult) -> None:
        """Add the rows that the transactions of a page made."""
        for projection, encoder, key_of in self._folded:
            put, encode = self._changes[projection.name].put, encoder.encode
            states = page.runs if projection.state is Run else page.sessions
            for position, state in states.items():
                before, version = page.versions[position], state.version
                put(key_of(state), encode(state), position, before=before, version=version)
            last = {key_of(state): state for state in states.values()}
            self.bytes_added += sum(len(state.to_json()) for state in last.values())
            encoder.forget()

    def store(self) -> None:
        """Store the added rows, and end the stored rows that they replace."""
        for projection, _, _ in self._folded:
            changes = self._changes[projection.name]
            if changes.closed:
                closed = closed_columns(changes, projection)
                self._connection.execute(close_rows(projection), closed)
            if changes.opened:
                rows = with_spans(changes.opened, projection)
                columns = ", ".join([*columns_of(projection), *SPAN_COLUMNS])
                statement = f"COPY {projection.name} ({columns}) FROM STDIN (FORMAT BINARY)"
                with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
                    copy.write(b"".join((COPY_HEADER, rows, COPY_TRAILER)))
        self._begin()
