"""Makes the rows of the projections anew from the events, beside the live ones, and swaps them.

Everything long is done while readers and writers go on: the fold of the whole log, by a process for
each core, the indexes, the comparison with what was there. Then the append lock is taken, the last
few events are folded, and the tables change places in one transaction. A rebuild that was killed
goes on where it was; of two at once, the second is refused.
"""

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from application.projections.fold import FOREVER
from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.ownership import require_own_log
from infrastructure.outbound.log.rebuild import tables
from infrastructure.outbound.log.rebuild.build import TableBuild
from infrastructure.outbound.log.rebuild.swap import TableSwap
from infrastructure.outbound.log.schema.connections import LogConnection, open_connection
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from infrastructure.rebuild_progress import OnProgress, RebuildProgress, ignore_rebuild_progress

REBUILD_LOCK_CLASS = 0x53504C52


class RebuildUnderWay(UserError):
    """Another process rebuilds this log."""


@dataclass(frozen=True, slots=True)
class RebuildCounts:
    """How much was read and written; `differing` counts rows that were not what they should be
    (None when they were not compared)."""

    events: int
    runs: int
    sessions: int
    differing: int | None
    seconds: float


async def rebuild(
    conninfo: str, *, compare: bool = True, on_progress: OnProgress = ignore_rebuild_progress
) -> RebuildCounts:
    """Rebuild while others read and write.

    `RebuildUnderWay` when another process does so already, `CorruptHistory` when an event cannot
    be folded: then everything stays as it was.
    """
    began = time.monotonic()
    async with _open_connection(conninfo) as guard, _open_connection(conninfo) as working:
        require_known_format(await format_of(guard))
        await require_own_log(guard)
        await _take_rebuild_lock(guard)
        building = TableBuild(partial(_open_connection, conninfo), working, conninfo, on_progress)
        await building.begin()
        try:
            at = await building.fold_the_bulk()
        except CorruptHistory:
            # It would be found again: nothing is kept to go on from.
            await tables.drop(working)
            raise
        await building.make_indexes()
        on_progress(RebuildProgress("comparison", 0, 1))
        found = await building.compare_rows(at, compare=compare)
        swap = TableSwap(guard, working, building.folds, building.shape, compare=compare)
        events, since = await swap.carry_out(
            partial(on_progress, RebuildProgress("exchange", 0, 1))
        )
        runs, sessions = [await _count_open(working, table) for table in tables.KEYS]
    differs = found + since if found is not None else None
    return RebuildCounts(events, runs, sessions, differs, time.monotonic() - began)


@contextlib.asynccontextmanager
async def _open_connection(conninfo: str) -> AsyncIterator[LogConnection]:
    async with await open_connection(conninfo, application="rebuild") as connection:
        await connection.execute(
            "SET statement_timeout = 0; SET work_mem = '32MB'; SET maintenance_work_mem = '128MB'"
        )
        yield connection


async def _take_rebuild_lock(connection: LogConnection) -> None:
    """Until the end of the connection: a process that is killed holds nothing."""
    cursor = await connection.execute(
        f"SELECT pg_try_advisory_lock({REBUILD_LOCK_CLASS}, hashtext(current_schema()))"
    )
    if (await cursor.fetchone()) != (True,):
        raise RebuildUnderWay("another process rebuilds this log already; let it finish")


async def _count_open(connection: LogConnection, table: str) -> int:
    row = await (
        await connection.execute(f"SELECT count(*) FROM {table} WHERE to_position = {FOREVER}")
    ).fetchone()
    assert row is not None
    return int(row[0])
