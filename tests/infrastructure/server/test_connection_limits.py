"""A server's connections end a wait for a lock themselves, so that the error names the lock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.server import database
from infrastructure.server.database import Database, DatabaseConnector

_LIMITS_MS = (
    "SELECT (SELECT setting::int FROM pg_settings WHERE name = 'lock_timeout'),"
    " (SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout')"
)


def connector_of(url: str) -> DatabaseConnector:
    return DatabaseConnector(Database(url, lambda: None, lambda: None))


@asynccontextmanager
async def opened(url: str, lease_seconds: float | None) -> AsyncIterator[LogConnection]:
    """Yield a direct connection, or one for leases of this many seconds."""
    if lease_seconds is None:
        async with await connector_of(url).connect() as connection:
            yield connection
        return
    pool = await connector_of(url).coordinating(lease_seconds=lease_seconds)
    try:
        async with pool.connection() as connection:
            yield connection
    finally:
        await pool.close()


@pytest.mark.parametrize("lease_seconds", [None, 3.0, 30.0, 600.0])
async def test_lock_wait_ends_before_statement(
    database_url: str, lease_seconds: float | None
) -> None:
    async with opened(database_url, lease_seconds) as connection:
        row = await (await connection.execute(_LIMITS_MS)).fetchone()
        assert row is not None
        lock_ms, statement_ms = row
        assert 0 < lock_ms < statement_ms < connection.answer_seconds_max * 1000


async def test_error_of_direct_connection_names_lock(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "DIRECT_ANSWER_SECONDS_MAX", 2.0)
    with psycopg.connect(database_url) as holder:
        holder.execute("LOCK TABLE log_head IN ACCESS EXCLUSIVE MODE")
        async with opened(database_url, None) as connection:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await connection.execute("SELECT position FROM log_head")
