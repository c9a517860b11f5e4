"""The indexes of tables that are filled at once: taken away first, and made anew by the definitions
that the database had."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from psycopg import sql

from infrastructure.outbound.log.verify.rows import ReadConnection

_INDEXES = (
    "SELECT c.relname, i.relname, pg_get_indexdef(x.indexrelid), k.conname,"
    " pg_get_constraintdef(k.oid)"
    " FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
    " LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.contype IN ('p', 'u')"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)"
    " ORDER BY c.relname, x.indisprimary DESC, i.relname"
)


@dataclass(frozen=True, slots=True)
class BulkIndex:
    """An index, or the constraint it belongs to, and how it is made anew."""

    table: str
    name: str
    definition: str
    is_constraint: bool

    def drop(self) -> sql.Composed:
        """The statement that takes it away."""
        if not self.is_constraint:
            return sql.SQL("DROP INDEX {}").format(sql.Identifier(self.name))
        return sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
            sql.Identifier(self.table), sql.Identifier(self.name)
        )

    def make(self) -> sql.Composed:
        """The statement that makes it anew."""
        # The definition is the database's own text.
        definition = sql.SQL(cast(Any, self.definition))
        if not self.is_constraint:
            return sql.Composed([definition])
        return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}").format(
            sql.Identifier(self.table), sql.Identifier(self.name), definition
        )


def drop_indexes(connection: ReadConnection, tables: Sequence[str]) -> list[BulkIndex]:
    """Take the indexes of these tables away, in the transaction that is open."""
    rows = connection.execute(_INDEXES, [list(tables)]).fetchall()
    found = [
        BulkIndex(table, constraint or name, as_constraint or definition, constraint is not None)
        for table, name, definition, constraint, as_constraint in rows
    ]
    for index in found:
        connection.execute(index.drop())
    return found


def make_indexes(
    connection: ReadConnection,
    indexes: Sequence[BulkIndex],
    on_progress: Callable[[int, int], None],
) -> None:
    """Make them anew; `on_progress` is told how many of how many are there."""
    for number, index in enumerate(indexes):
        on_progress(number, len(indexes))
        connection.execute(index.make())
