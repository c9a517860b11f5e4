"""Indexes that are created after the tables are filled: maintaining them row by row takes
longer."""

from collections.abc import Callable, Collection

from psycopg import Connection
from psycopg.rows import TupleRow

from application.projections.catalog import PROJECTIONS

PRIMARY_KEYS_OF = tuple(projection.name for projection in PROJECTIONS)
"""These tables keep their primary keys, which find the rows to end."""

_INDEXES = (
    "SELECT format('%%I', i.relname), x.indrelid::regclass::text, pg_get_indexdef(i.oid),"
    " pg_get_constraintdef(c.oid)"
    " FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid"
    " LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype IN ('p', 'u', 'x')"
    " WHERE x.indrelid = ANY(%s::regclass[]) AND NOT (x.indisprimary AND"
    " x.indrelid = ANY(%s::regclass[])) ORDER BY x.indrelid, i.oid"
)


class DroppedIndexes:
    """Indexes of some tables, dropped in the open transaction and re-created by `make`."""

    def __init__(self, connection: Connection[TupleRow], tables: Collection[str]) -> None:
        self._connection = connection
        self._definitions: list[str] = []
        for name, table, index, constraint in connection.execute(
            _INDEXES, [list(tables), list(PRIMARY_KEYS_OF)]
        ).fetchall():
            if constraint is not None:
                connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
                self._definitions.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {constraint}")
            else:
                connection.execute(f"DROP INDEX {name}")
                self._definitions.append(index)

    def make(self, on_progress: Callable[[int, int], None]) -> None:
        """Re-create the indexes from their definitions."""
        for made, definition in enumerate(self._definitions):
            on_progress(made, len(self._definitions))
            self._connection.execute(definition)
