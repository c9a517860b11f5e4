"""How a server reaches its database, also after it was gone."""

import asyncio
from collections.abc import Callable

import psycopg
from psycopg_pool import AsyncConnectionPool

from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.log.schema.connections import (
    KEEPALIVE,
    PLANNING,
    LogConnection,
    open_connection,
)
from infrastructure.server.database import Database

READING_CONNECTIONS_MAX = 12
# One for each kind of work that goes on by itself: none of them waits for another.
COORDINATION_CONNECTIONS_MAX = 8
POOL_WAIT_SECONDS = 10.0


async def check_alive(connection: LogConnection) -> None:
    """Raises `OperationalError` when the server has hung up meanwhile. Looks at the socket alone,
    so that it costs no round trip: first there is a last word to be read, then the end."""
    for _ in range(2):
        connection.pgconn.consume_input()


class DatabaseConnector:
    """Opens connections; an embedded server that is gone is started again on the way."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.on_connection: Callable[[], None] = lambda: None

    @property
    def conninfo(self) -> str:
        """Where the database is, for processes that connect by themselves; it may hold a
        password."""
        return self._database.conninfo

    async def connect(self) -> LogConnection:
        """A connection of its own, for the writer or the tail."""
        try:
            return await open_connection(self._database.conninfo, application="server")
        except psycopg.OperationalError:
            try:
                await asyncio.to_thread(self._database.ensure_running)
            except EmbeddedPostgresError as error:
                raise psycopg.OperationalError(str(error)) from error
            return await open_connection(self._database.conninfo, application="server")

    async def reading(self) -> AsyncConnectionPool[LogConnection]:
        """Connections for reading, open and ready."""
        return await self._pool("reads", least=2, most=READING_CONNECTIONS_MAX)

    async def coordinating(self) -> AsyncConnectionPool[LogConnection]:
        """Connections for leases and claims, which no crowd of readers may keep waiting."""
        return await self._pool("coordination", least=1, most=COORDINATION_CONNECTIONS_MAX)

    async def _set_up(self, connection: LogConnection) -> None:
        """Limits, clock and planning. Not by `options`, which would replace those that stand in the
        URL, such as the schema."""
        self.on_connection()
        await connection.execute(
            f"SET timezone = 'UTC'; SET statement_timeout = 30000; SET jit = off; {PLANNING}"
        )

    async def _pool(
        self, purpose: str, *, least: int, most: int
    ) -> AsyncConnectionPool[LogConnection]:
        pool: AsyncConnectionPool[LogConnection] = AsyncConnectionPool(
            self._database.conninfo,
            min_size=least,
            max_size=most,
            timeout=POOL_WAIT_SECONDS,
            configure=self._set_up,
            kwargs={
                "autocommit": True,
                "application_name": f"spawnlog {purpose}",
                **KEEPALIVE,
            },
            check=check_alive,
            open=False,
        )
        await pool.open(wait=True, timeout=POOL_WAIT_SECONDS)
        return pool
