"""Connections to the database, as the log needs them."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from application.log.event_log import LogUnavailable
from infrastructure.outbound.log.codec.binary import BinaryColumn, ColumnDumper

LogConnection = psycopg.AsyncConnection[TupleRow]
Connect = Callable[[], Awaitable[LogConnection]]
CONNECT_TIMEOUT_SECONDS = 10
LOCK_TIMEOUT_MS = 10_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000
KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
"""For how long a connection to a database on another machine is believed in that says nothing."""


# Every question of a server goes along an index. A plan that was made while the tables were small
# would read them whole, and go on doing so when they are large.
PLANNING = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"


@contextlib.asynccontextmanager
async def borrow_connection(
    pool: AsyncConnectionPool[LogConnection],
) -> AsyncIterator[LogConnection]:
    """A pooled connection; when the database is away, `LogUnavailable` says so."""
    try:
        async with pool.connection() as connection:
            yield connection
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        raise LogUnavailable("the database is away; ask again in a moment") from error


async def open_connection(conninfo: str, *, application: str, **settings: Any) -> LogConnection:
    """A connection outside any transaction, with limits on what it may wait for."""
    connection = await psycopg.AsyncConnection.connect(
        conninfo,
        autocommit=True,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        application_name=f"spawnlog {application}",
        **KEEPALIVE,
        **settings,
    )
    connection.adapters.register_dumper(BinaryColumn, ColumnDumper)
    try:
        await connection.execute(
            f"SET lock_timeout = {LOCK_TIMEOUT_MS};"
            f" SET statement_timeout = {STATEMENT_TIMEOUT_MS};"
            f" SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_TIMEOUT_MS};"
            " SET timezone = 'UTC'; SET synchronous_commit = on; SET jit = off"
        )
    except BaseException:
        await connection.close()
        raise
    return connection
