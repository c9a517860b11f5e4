"""Store of a history with COPY in one transaction: either all of it becomes visible, or nothing.

The caller encodes rows and a thread sends them, so that database and simulation work at the same
time. Indexes and constraints are dropped first and created again, from their definitions, after all
rows. Rows that are still current keep theirs: a history that has ended has few.
"""

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast
from uuid import UUID

import psycopg
from psycopg import sql

from benchmarks.history.storage.tables import TABLES
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.codec.binary import COPY_HEADER, COPY_TRAILER
from infrastructure.outbound.log.schema.projection_versions import VERSIONS

WAITING_CHUNKS_MAX = 1
STORE_SECONDS_MAX = 1_800.0

_INDEXES = (
    "SELECT c.relname, i.relname, pg_get_indexdef(x.indexrelid), k.conname,"
    " pg_get_constraintdef(k.oid)"
    " FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid"
    " LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.contype IN ('p', 'u')"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(%s)"
    " AND position('to_position' IN coalesce(pg_get_expr(x.indpred, x.indrelid), '')) = 0"
    " ORDER BY c.relname, x.indisprimary DESC, i.relname"
)
_KINDS = (
    "SELECT column_name, data_type FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND table_name = %s"
)


@dataclass(frozen=True, slots=True)
class _Index:
    """An index, or the constraint it belongs to, and how it is made anew."""

    table: str
    name: str
    definition: str
    constraint: str | None

    def drop(self) -> sql.Composed:
        if self.constraint is None:
            return sql.SQL("DROP INDEX {}").format(sql.Identifier(self.name))
        return sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(
            sql.Identifier(self.table), sql.Identifier(self.name)
        )

    def make(self) -> sql.Composed:
        # The definition is the database's own text.
        definition = sql.SQL(cast(Any, self.definition))
        if self.constraint is None:
            return sql.Composed([definition])
        return sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {}").format(
            sql.Identifier(self.table), sql.Identifier(self.name), definition
        )


_SHORT_NAMES = {"integer": "int", "timestamp with time zone": "timestamptz"}


class BulkStore:
    """Transaction on a migrated, empty database. Raises `UserError` for any other.

    `log_id` is whose log it is, `kinds` the types of the columns of `TABLES`.
    """

    def __init__(self, conninfo: str) -> None:
        self._connection = psycopg.connect(conninfo, application_name="spawnlog benchmark history")
        self._chunks: queue.Queue[Mapping[str, bytes] | None] = queue.Queue(WAITING_CHUNKS_MAX)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._store_on, name="bulk store", daemon=True)
        self.kinds: dict[str, list[str]] = {}
        self._indexes: list[_Index] = []
        self.log_id = UUID(int=0)

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._connection.close()
            raise
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread.is_alive():
            self._put(None)
            self._thread.join(STORE_SECONDS_MAX)
        self._connection.close()

    def store(self, rows: Mapping[str, bytes]) -> None:
        """Send encoded rows; wait while too many are on their way. Raises the errors of earlier
        sends.
        """
        self._put(rows)
        self._raise_failure()

    def flush(self) -> None:
        """Wait until everything is sent."""
        self._put(None)
        self._thread.join(STORE_SECONDS_MAX)
        self._raise_failure()

    def commit(self, position: int, recorded_at: datetime, chain_hash: bytes) -> None:
        """Move the head to the last sent event, and make everything visible."""
        self.flush()
        self._connection.execute(
            "UPDATE log_head SET position = %s, recorded_at = %s, chain_hash = %s",
            [position, recorded_at, chain_hash],
        )
        for name, version in VERSIONS.items():
            self._connection.execute(
                "INSERT INTO projections (name, version) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET version = excluded.version",
                [name, version],
            )
        for index in self._indexes:
            self._connection.execute(index.make())
        self._connection.commit()
        self._connection.autocommit = True
        self._connection.execute("ANALYZE")

    def _begin(self) -> None:
        self._connection.execute(
            "SET LOCAL statement_timeout = 0; SET LOCAL synchronous_commit = off;"
            " SET LOCAL maintenance_work_mem = '256MB'"
        )
        head = self._connection.execute(
            "SELECT log_id, position, (SELECT count(*) FROM runs) FROM log_head FOR UPDATE"
        ).fetchone()
        if head is None or head[1] or head[2]:
            raise UserError("this log is not empty; a history is generated into a new database")
        self.log_id = head[0]
        tables = list(TABLES)
        self.kinds = {table: self._kinds_of(table) for table in tables}
        found = self._connection.execute(_INDEXES, [tables]).fetchall()
        self._indexes = [_index(*row) for row in found]
        for index in self._indexes:
            self._connection.execute(index.drop())

    def _kinds_of(self, table: str) -> list[str]:
        found: dict[str, str] = dict(self._connection.execute(_KINDS, [table]).fetchall())
        columns = TABLES[table]
        if set(found) != set(columns):
            raise UserError(
                f"table {table} has columns that this generator does not know:"
                f" {sorted(set(found) ^ set(columns))}"
            )
        printed = {"state": "utf-8"} if table in VERSIONS else {}
        kinds = {name: _SHORT_NAMES.get(kind, kind) for name, kind in found.items()} | printed
        return [kinds[column] for column in columns]

    def _put(self, chunk: Mapping[str, bytes] | None) -> None:
        while self._thread.is_alive():
            try:
                self._chunks.put(chunk, timeout=0.5)
                return
            except queue.Full:
                continue

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _store_on(self) -> None:
        try:
            with self._connection.cursor() as cursor:
                while (chunk := self._chunks.get()) is not None:
                    for table, rows in chunk.items():
                        self._copy(cursor, table, TABLES[table], rows)
        except BaseException as error:
            self._failure = error

    @staticmethod
    def _copy(
        cursor: "psycopg.Cursor[Any]", table: str, columns: Sequence[str], rows: bytes
    ) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with cursor.copy(statement) as copy:
            copy.write(COPY_HEADER)
            copy.write(rows)
            copy.write(COPY_TRAILER)


def _index(
    table: str, name: str, definition: str, constraint: str | None, as_constraint: str | None
) -> _Index:
    return _Index(table, constraint or name, as_constraint or definition, constraint)
