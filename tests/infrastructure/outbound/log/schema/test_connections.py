"""Connections: with limits on waits, and never left open."""

import asyncio
import sys
from contextlib import suppress

import psycopg
import pytest

from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.schema.connections import (
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    LogConnection,
    borrow_connection,
    open_connection,
)
from infrastructure.outbound.log.verify.rows import open_read_connection, whole_table_transaction
from tests.support.faults.held_commits import Lines
from tests.support.servers.running_log import open_pool, running_on
from tests.support.tiers import nightly_but
from tests.support.waiting import until

STEPS = 60


async def test_waits_of_a_connection_are_limited(connection: LogConnection) -> None:
    expected = {
        "lock_timeout": "10s",
        "statement_timeout": "30s",
        "idle_in_transaction_session_timeout": "5s",
        "TimeZone": "UTC",
        "synchronous_commit": "on",
    }
    for name, value in expected.items():
        row = await (await connection.execute(f"SHOW {name}")).fetchone()
        assert row == (value,), name
    assert connection.autocommit
    assert connection.info.parameter_status("application_name") == "spawnlog test"


def test_reader_waits_little_longer_than_a_statement(database_url: str) -> None:
    with open_read_connection(database_url) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("2min",)
        assert connection.answer_seconds_max == 130
        with whole_table_transaction(connection):
            assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
            assert connection.answer_seconds_max == WHOLE_TABLE_ANSWER_SECONDS_MAX
        assert connection.execute("SHOW statement_timeout").fetchone() == ("2min",)
        assert connection.answer_seconds_max == 130


WHOLE_TABLES = {
    "migration": "schema.migrate import migration_engine as e; e(url).connect().exec_driver_sql",
    "import": "transfer.import_log import _open_connection as opened; opened(url).execute",
    "verification": "verify.rows import open_read_connection as opened; opened(url).execute",
}
ASLEEP = "FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"


@pytest.mark.kill
@pytest.mark.parametrize("opening", nightly_but(WHOLE_TABLES.values(), [WHOLE_TABLES["migration"]]))
async def test_statement_without_limit_ends_with_its_client(
    connection: LogConnection, database_url: str, opening: str
) -> None:
    program = f"import sys; url = sys.argv[1]; from infrastructure.outbound.log.{opening}"
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{program}('SELECT pg_sleep(60)')", database_url)
    )

    async def asleep() -> int:
        row = await (await connection.execute(f"SELECT count(*) {ASLEEP}")).fetchone()
        assert row is not None
        return int(row[0])

    async def is_there() -> bool:
        return await asleep() == 1

    async def is_gone() -> bool:
        return await asleep() == 0

    await until(is_there, "the statement runs", seconds=30)
    client.kill()
    await client.wait()
    await until(is_gone, "the statement has ended", seconds=15)


async def test_cancelled_connect_leaves_no_connection(
    database_url: str, connection: LogConnection
) -> None:
    """Given up after any number of steps; the fixture fails when a connection stays open."""
    for steps in range(STEPS):
        opening = asyncio.create_task(open_connection(database_url, application="test"))
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        with suppress(asyncio.CancelledError):
            await (await opening).close()

    async def alone() -> bool:
        cursor = await connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        )
        return await cursor.fetchone() == (1,)

    await until(alone, "no connection is left behind", seconds=5)


async def test_log_that_cannot_start_leaves_nothing(database_url: str) -> None:
    for good in range(2):
        lines = Lines(database_url)
        lines.good = good
        with pytest.raises(psycopg.OperationalError, match="nobody there"):
            async with running_on(database_url, connect=lines.connect):
                pass


async def test_absent_database_is_told(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        async with borrow_connection(pool) as connection:
            pid = connection.info.backend_pid
        async with await open_connection(database_url, application="test") as second_connection:
            await second_connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        with pytest.raises(LogUnavailableError, match="retry in a moment"):
            async with borrow_connection(pool) as connection:
                await connection.execute("SELECT 1")
        async with borrow_connection(pool) as connection:
            await connection.execute("SELECT 1")
    with pytest.raises(LogUnavailableError):
        async with borrow_connection(pool):
            pass


async def test_read_only_disk_is_an_outage(database_url: str) -> None:
    denied = "DO $$ BEGIN RAISE insufficient_privilege USING MESSAGE = '{}'; END $$"
    async with open_pool(database_url) as pool:
        with pytest.raises(LogUnavailableError, match="disk of the database is read-only"):
            async with borrow_connection(pool) as connection:
                await connection.execute(
                    denied.format('could not open file "base/1/2": Read-only file system').encode()
                )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with borrow_connection(pool) as connection:
                await connection.execute(denied.format("permission denied for table runs").encode())


async def test_error_of_the_question_is_no_absence(database_url: str) -> None:
    async with open_pool(database_url) as pool:
        with pytest.raises(psycopg.errors.UndefinedTable):
            async with borrow_connection(pool) as connection:
                await connection.execute("SELECT 1 FROM nothing")
