"""The floor: plain psycopg, one transaction a spawn, the very rows that a real spawn wrote.

No lock, no decision, no chain, no notification: what the database and its driver cost by
themselves for the same rows, with as many callers.
"""

import itertools
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

POOL_CONNECTIONS = 8
TABLES = ("events", "runs", "sessions", "contents", "content_keys")
FRESH_POSITIONS = frozenset({"position", "from_position", "append_last"})


@dataclass(frozen=True, slots=True)
class Template:
    """The rows of one spawn, a table's columns and rows each."""

    rows: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]


async def template_of(conninfo: str, run_id: UUID, until: int) -> Template:
    """The rows that were written for a run up to the position at which its spawn was answered."""
    async with await psycopg.AsyncConnection.connect(conninfo) as connection:
        cursor = await connection.execute("SELECT state FROM runs WHERE run_id = %s", [run_id])
        row = await cursor.fetchone()
        assert row is not None
        state: dict[str, Any] = row[0]
        key, session_id = state["requester"]["sessionKey"], state["sessionId"]
        queries = {
            "events": ("run_id = %s AND position <= %s", [run_id, until]),
            "runs": ("run_id = %s AND from_position <= %s", [run_id, until]),
            "sessions": (
                "(session_key = %s OR run_id = %s) AND from_position <= %s",
                [key, run_id, until],
            ),
            "contents": ("session_id = %s AND kind IN ('task', 'preamble')", [session_id]),
            "content_keys": ("session_id = %s", [session_id]),
        }
        found = {}
        for table, (condition, values) in queries.items():
            cursor = await connection.execute(
                sql.SQL("SELECT * FROM {} WHERE " + condition).format(sql.Identifier(table)),
                values,
            )
            assert cursor.description is not None
            columns = tuple(column.name for column in cursor.description)
            found[table] = (columns, await cursor.fetchall())
        return Template(found)


class Floor:
    """Inserts copies of a template into a database of its own."""

    def __init__(self, conninfo: str, template: Template) -> None:
        self._template = template
        self._positions = itertools.count(1)
        self._pool: AsyncConnectionPool[Any] = AsyncConnectionPool(
            conninfo,
            min_size=POOL_CONNECTIONS,
            max_size=POOL_CONNECTIONS,
            open=False,
            kwargs={"prepare_threshold": 0},
        )

    async def open(self) -> None:
        """Connect."""
        await self._pool.open(wait=True)

    async def close(self) -> None:
        """Disconnect."""
        await self._pool.close()

    async def spawn(self) -> None:
        """One transaction with every row of one spawn."""
        fresh = _Fresh(self._positions)
        async with self._pool.connection() as connection, connection.pipeline():
            for table, (columns, rows) in self._template.rows.items():
                statement = _insert(table, columns)
                for row in rows:
                    values = [
                        fresh.value(column, value)
                        for column, value in zip(columns, row, strict=True)
                    ]
                    await connection.execute(statement, values)


class _Fresh:
    """The same ids for the same ids within one copy, others in the next."""

    def __init__(self, positions: "itertools.count[int]") -> None:
        self._positions = positions
        self._ids: dict[object, object] = {}

    def value(self, column: str, value: Any) -> Any:
        if column in FRESH_POSITIONS:
            return next(self._positions)
        if isinstance(value, UUID):
            return self._ids.setdefault(value, uuid4())
        if column in ("stream", "session_key", "requester", "root", "child_session_key"):
            return self._ids.setdefault(value, f"{value}-{uuid4().hex}") if value else value
        if isinstance(value, dict):
            return Jsonb(value)
        return value


def _insert(table: str, columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
    )
