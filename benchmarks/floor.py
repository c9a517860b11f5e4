"""Lower bound: plain psycopg, one transaction per act, with the rows that a real act wrote.

No lock, decision, chain or notification: the cost of database and driver for the same rows and
callers. Each table gets one statement, a transaction is one pipeline, and values are encoded in
advance.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import UUID, uuid4

import orjson
import psycopg
from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from infrastructure.outbound.log.read.fold_input import runs_folded
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection

POSITIONS = frozenset(
    {
        "position",
        "append_last",
        "from_position",
        "to_position",
        "created_position",
        "queued_position",
    }
)
CONNECTIONS_MAX = 16
"""Maximum number of connections. More are slower, and a server accepts only so many."""

KEYS = frozenset({"stream", "session_key", "requester", "root", "child_session_key"})


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one spawn in one table."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def statement(self) -> sql.Composed:
        """Return one INSERT of all rows."""
        row = sql.SQL("({})").format(sql.SQL(", ").join(sql.Placeholder() for _ in self.columns))
        return sql.SQL("INSERT INTO {} ({}) VALUES {}").format(
            sql.Identifier(self.table),
            sql.SQL(", ").join(map(sql.Identifier, self.columns)),
            sql.SQL(", ").join([row] * len(self.rows)),
        )


async def rows_of(conninfo: str, run_id: UUID) -> tuple[TableRows, ...]:
    """Return the rows that were written for a run with one transaction."""
    async with await psycopg.AsyncConnection.connect(conninfo) as connection:
        cursor = await connection.execute(
            "SELECT requester, session_id FROM runs WHERE run_id = %s LIMIT 1", [run_id]
        )
        row = await cursor.fetchone()
        assert row is not None
        requester, session_id = row
        return (
            await _rows(connection, "events", "run_id = %s", [run_id]),
            await _rows(connection, "runs", "run_id = %s", [run_id]),
            await _rows(
                connection, "sessions", "session_key = %s OR run_id = %s", [requester, run_id]
            ),
            await _rows(connection, "contents", "session_id = %s AND kind = 'task'", [session_id]),
            await _rows(connection, "content_keys", "session_id = %s", [session_id]),
        )


async def rows_between(conninfo: str, first: int, last: int, text: UUID) -> tuple[TableRows, ...]:
    """Return the rows that were written with these events and one text, while nothing else was.

    If the run has continued since, its row gets the state of that time.
    """
    span = [first, last]
    async with await open_connection(conninfo, application="benchmark") as connection:
        runs = await _rows(connection, "runs", "from_position BETWEEN %s AND %s", span)
        return (
            await _rows(connection, "events", "position BETWEEN %s AND %s", span),
            await _with_states(connection, runs),
            await _rows(connection, "sessions", "from_position BETWEEN %s AND %s", span),
            await _rows(connection, "contents", "content_id = %s", [text]),
        )


async def _with_states(connection: LogConnection, runs: TableRows) -> TableRows:
    at = {name: runs.columns.index(name) for name in ("run_id", "from_position", "state")}
    wanted = [(row[at["run_id"]], row[at["from_position"]]) for row in runs.rows]
    states = await runs_folded(connection, wanted)
    filled = []
    for key, row in zip(wanted, runs.rows, strict=True):
        state = states[key].run.to_json().decode()
        filled.append((*row[: at["state"]], state, *row[at["state"] + 1 :]))
    return replace(runs, rows=tuple(filled))


async def _rows(
    connection: psycopg.AsyncConnection[Any], table: str, condition: str, values: Sequence[Any]
) -> TableRows:
    query = sql.SQL("SELECT * FROM {} WHERE " + condition).format(sql.Identifier(table))
    cursor = await connection.execute(query, values)
    assert cursor.description is not None
    columns = tuple(column.name for column in cursor.description)
    rows = tuple(tuple(map(_encoded, row)) for row in await cursor.fetchall())
    assert rows, f"nothing was written to {table}"
    return TableRows(table, columns, rows)


def _encoded(value: object) -> object:
    return orjson.dumps(value).decode() if isinstance(value, dict) else value


class Copies:
    """Copies of the rows of one spawn. Within a copy the same id stays the same; every copy has
    ids, keys and positions of its own, from `first` on, so that the indexes grow as in truth."""

    def __init__(self, rows: Sequence[TableRows], *, first: int = 1) -> None:
        self._rows = rows
        (events,) = [row for row in rows if row.table == "events"]
        place = events.columns.index("position")
        positions = sorted(row[place] for row in events.rows)
        self._offsets = {position: offset for offset, position in enumerate(positions)}
        self._bases = itertools.count(first, len(positions))

    @property
    def statements(self) -> list[sql.Composed]:
        """Return one INSERT per table."""
        return [row.statement() for row in self._rows]

    def next(self) -> list[list[Any]]:
        """Return the values of one copy, as a flat list per table."""
        base = next(self._bases)
        fresh: dict[object, object] = {}
        return [
            [
                self._value(column, value, base, fresh)
                for row in item.rows
                for column, value in zip(item.columns, row, strict=True)
            ]
            for item in self._rows
        ]

    def _value(self, column: str, value: Any, base: int, fresh: dict[object, object]) -> Any:
        if isinstance(value, UUID):
            return fresh.setdefault(value, uuid4())
        if column in POSITIONS and value in self._offsets:
            return base + self._offsets[value]
        if column in KEYS and value is not None:
            return fresh.setdefault(value, f"{value[:-16]}{uuid4().hex[:16]}")
        return value


class Floor:
    """Writer of copies, over one connection per caller up to a limit."""

    def __init__(self, conninfo: str, copies: Copies, callers: int) -> None:
        self._copies = copies
        self._statements = copies.statements
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] = AsyncConnectionPool(
            conninfo,
            min_size=min(callers, CONNECTIONS_MAX),
            max_size=min(callers, CONNECTIONS_MAX),
            open=False,
            kwargs={"prepare_threshold": 0},
        )

    async def open(self) -> None:
        await self._pool.open(wait=True)

    async def close(self) -> None:
        await self._pool.close()

    async def write(self) -> None:
        """Write the rows of one copy in one transaction."""
        async with (
            self._pool.connection() as connection,
            connection.pipeline(),
            connection.transaction(),
        ):
            for statement, values in zip(self._statements, self._copies.next(), strict=True):
                await connection.execute(cast(sql.SQL, statement), values)
