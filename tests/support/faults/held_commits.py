"""Transactions held at their commit, and connections cut during one."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from infrastructure.outbound.log.schema.connections import LogConnection, open_connection
from tests.support.waiting import until

HELD_TABLES = ("events", "idempotency")
_HOLD = "pg_advisory_lock(7, 7)"
_SHARE = "pg_advisory_xact_lock_shared(7, 7)"
_WAITING = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid) = (7, 7)"
    " AND NOT granted"
)


class HeldCommits:
    """Lock that holds every commit of the log, written and not visible, until `release`."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection = connection

    async def waiting(self) -> list[int]:
        """Return the held backends."""
        rows = await (await self._connection.execute(_WAITING)).fetchall()
        return [row[0] for row in rows]

    async def held(self) -> int:
        """Wait for the held backend, and return it."""

        async def one() -> bool:
            return len(await self.waiting()) == 1

        await until(one, "a commit is held")
        return (await self.waiting())[0]

    async def terminate(self, pid: int) -> None:
        """End a backend, as an administrator would, and wait until it is gone."""
        await self._connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    async def is_gone(self, pid: int) -> bool:
        """Return True if a backend and its transaction have ended."""
        cursor = await self._connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]
        )
        return await cursor.fetchone() is None

    async def blocks_a_row(self) -> None:
        """Wait until another transaction waits for a row that a held one has changed."""

        async def blocks() -> bool:
            cursor = await self._connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event IN ('transactionid', 'tuple')"
            )
            return await cursor.fetchone() is not None

        await until(blocks, "somebody waits for a row")

    async def release(self) -> None:
        """Permit all commits again."""
        await self._connection.execute("SELECT pg_advisory_unlock_all()")


@asynccontextmanager
async def held_commits(url: str) -> AsyncIterator[HeldCommits]:
    """Hold commits from here on."""
    connection = await open_connection(url, application="holds commits")
    async with connection:
        await connection.execute(
            "CREATE OR REPLACE FUNCTION held() RETURNS trigger LANGUAGE plpgsql"
            f" AS $$ BEGIN PERFORM {_SHARE}; RETURN NULL; END $$"
        )
        for table in HELD_TABLES:
            await connection.execute(
                f"CREATE CONSTRAINT TRIGGER held AFTER INSERT ON {table}"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION held()"
            )
        await connection.execute(f"SELECT {_HOLD}")
        try:
            yield HeldCommits(connection)
        finally:
            await connection.execute("SELECT pg_advisory_unlock_all()")


class Lines:
    """Factory of connections that can be cut, and new ones blocked."""

    def __init__(self, url: str, *settings: str) -> None:
        self._url = url
        self._settings = settings
        self._opened: dict[int, LogConnection] = {}
        self.good: int | None = None
        self.free = asyncio.Event()
        self.free.set()

    async def connect(self) -> LogConnection:
        """Open a connection for a log; works as often as `good` says."""
        await self.free.wait()
        if self.good is not None:
            self.good -= 1
            if self.good < 0:
                raise psycopg.OperationalError("nobody there")
        connection = await open_connection(self._url, application="test")
        for setting in self._settings:
            await connection.execute(f"SET {setting}")
        self._opened[connection.info.backend_pid] = connection
        return connection

    def cut(self, pid: int) -> None:
        """Cut the connection to this backend on the way, so that the backend does not notice."""
        line = socket.socket(fileno=self._opened[pid].fileno())
        try:
            line.shutdown(socket.SHUT_RDWR)
        finally:
            line.detach()
