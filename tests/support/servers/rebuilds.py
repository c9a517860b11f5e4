"""Rebuilds in separate processes, and their traces in the database."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from infrastructure.outbound.log.schema.connections import open_connection
from tests.support.servers.embedded_servers import PROJECT
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

ROWS = {
    "runs": "SELECT t::text FROM runs t ORDER BY run_id, from_position",
    "sessions": "SELECT t::text FROM sessions t ORDER BY session_key, from_position",
}
_CATALOG = """
SELECT 'index', indexdef FROM pg_indexes WHERE schemaname = current_schema()
UNION ALL
SELECT 'constraint', conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE conrelid IN ('runs'::regclass, 'sessions'::regclass)
UNION ALL
SELECT 'column', attrelid::regclass || ' ' || attname || ' ' || attnotnull || ' '
    || format_type(atttypid, atttypmod) || ' ' || attnum FROM pg_attribute
    WHERE attrelid IN ('runs'::regclass, 'sessions'::regclass) AND attnum > 0
UNION ALL
SELECT 'table', relname || coalesce(reloptions::text, ' ') || coalesce(relacl::text, ' ')
    FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v')
ORDER BY 1, 2
"""
_PROGRAM = """
import asyncio, os, signal, sys
from infrastructure.outbound.log.rebuild import build, fold_part
from infrastructure.outbound.log.rebuild.rebuild import rebuild
url, step, done, build.PROCESSES_FROM_EVENTS, fold_part.PAGE_EVENTS = (
    int(one) if one.isdecimal() else one for one in sys.argv[1:]
)
def heard(progress):
    if progress.step == step and progress.done >= done:
        os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(rebuild(url, on_progress=heard))
"""


async def rows(running: RunningLog) -> dict[str, list[Any]]:
    """Return every row of the projections."""
    return {table: await running.ask(query) for table, query in ROWS.items()}


async def catalog(running: RunningLog) -> list[Any]:
    """Return all columns, indexes, constraints and rights of the tables."""
    return await running.ask(_CATALOG)


async def killed_rebuild(
    running: RunningLog, step: str, done: int, *, in_processes: bool, page: int
) -> None:
    """Run a rebuild, and kill it with SIGKILL when it has done this much of a step."""
    least = "0" if in_processes else str(10**9)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, running.url, step, str(done), least, str(page)),
        cwd=PROJECT,
    )
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL

    async def nobody_is_left() -> bool:
        return not await running.ask(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'spawnlog rebuild'"
        )

    await until(nobody_is_left, "its processes have ended with it")


@asynccontextmanager
async def held_table(url: str, table: str, mode: str = "ACCESS SHARE") -> AsyncIterator[None]:
    """Lock the table in a mode during the block, by default as a reader."""
    async with await open_connection(url, application="test") as connection:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        await connection.execute("BEGIN")
        await connection.execute(f"LOCK TABLE {table} IN {mode} MODE")
        yield
        await connection.execute("COMMIT")
