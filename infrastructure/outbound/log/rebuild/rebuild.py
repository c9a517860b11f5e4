"""Rebuild of the projections from the events: new rows are made beside the live ones, then the two
are swapped.

All long work is done while readers and writers continue: the fold of the whole log by several
processes, the indexes, and the comparison with the live rows. Then the append lock is taken, the
last few events are folded, and the tables are swapped in one transaction. A rebuild that was killed
resumes where it was. Of two concurrent rebuilds, the second is refused.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from application.projections.fold import FOREVER
from application.projections.run_rows import RUNS
from application.projections.session_rows import SESSIONS
from domain.values.refusals import CorruptHistoryError
from infrastructure.contract.errors import UserError
from infrastructure.contract.operations import OnProgress, RebuildProgress, ignore_rebuild_progress
from infrastructure.outbound.log.rebuild import tables
from infrastructure.outbound.log.rebuild.build import TableBuild
from infrastructure.outbound.log.rebuild.swap import TableSwap
from infrastructure.outbound.log.schema.connections import (
    LIMITS,
    STATEMENTS_WITHOUT_LIMIT,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    LogConnection,
    open_connection,
)
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from infrastructure.outbound.log.schema.projection_versions import stale_projections

REBUILD_LOCK_CLASS = 0x53504C52


class RebuildInProgressError(UserError):
    """Another process is rebuilding this log."""


@dataclass(frozen=True, slots=True)
class RebuildCounts:
    """Numbers of events read and rows written. `differing` counts live rows that were wrong, or is
    None if they were not compared."""

    events: int
    runs: int
    sessions: int
    differing: int | None
    seconds: float


async def rebuild(
    conninfo: str,
    *,
    compare: bool = True,
    if_stale: bool = False,
    on_progress: OnProgress = ignore_rebuild_progress,
) -> RebuildCounts:
    """Rebuild the projections while servers read and write.

    Args:
        conninfo: The URL of the database.
        compare: Count the live rows that differ from the rebuilt ones.
        if_stale: Rebuild only if the rows are of another version.
        on_progress: Called with the progress of each step.

    Raises:
        RebuildInProgressError: Another process is rebuilding, or, with `if_stale`, has just done
            so.
        CorruptHistoryError: An event cannot be folded. The live rows are unchanged.
    """
    began = time.monotonic()
    async with (
        open_rebuild_connection(conninfo) as guard,
        open_rebuild_connection(conninfo) as working,
    ):
        require_known_format(await format_of(guard))
        await take_rebuild_lock(guard)
        if if_stale and not await stale_projections(guard):
            raise RebuildInProgressError("another process has just rebuilt this log")
        building = TableBuild(
            partial(open_rebuild_connection, conninfo), working, conninfo, on_progress
        )
        await building.begin()
        try:
            at = await building.fold_the_bulk()
        except CorruptHistoryError:
            # A resumed rebuild would fail again, so keep nothing.
            await tables.drop(working)
            raise
        await building.make_indexes()
        on_progress(RebuildProgress("comparison", 0, 1))
        found = await building.compare_rows(at, compare=compare)
        swap = TableSwap(guard, working, building.folds, building.shape, compare=compare)
        events, since = await swap.carry_out(
            partial(on_progress, RebuildProgress("exchange", 0, 1))
        )
        runs, sessions = [
            await count_open(working, projection.name) for projection in (RUNS, SESSIONS)
        ]
    differs = found + since if found is not None else None
    return RebuildCounts(events, runs, sessions, differs, time.monotonic() - began)


@contextlib.asynccontextmanager
async def open_rebuild_connection(conninfo: str) -> AsyncIterator[LogConnection]:
    """Open a connection whose statements have the time and memory that whole tables need."""
    settings = (
        f"{LIMITS}; {STATEMENTS_WITHOUT_LIMIT}; SET work_mem = '32MB';"
        " SET maintenance_work_mem = '128MB';"
        # Two indexes are built at a time.
        " SET max_parallel_maintenance_workers = 0"
    )
    async with await open_connection(
        conninfo,
        application="rebuild",
        settings=settings,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
    ) as connection:
        yield connection


async def take_rebuild_lock(connection: LogConnection) -> None:
    """Take the rebuild lock until the connection ends, so that a killed process holds nothing.

    Raises:
        RebuildInProgressError: Another process holds the lock.
    """
    cursor = await connection.execute(
        f"SELECT pg_try_advisory_lock({REBUILD_LOCK_CLASS}, hashtext(current_schema()))"
    )
    if (await cursor.fetchone()) != (True,):
        raise RebuildInProgressError(
            "another process is already rebuilding this log; wait until it has finished"
        )


async def count_open(connection: LogConnection, table: str) -> int:
    """Return the number of current rows of a projection."""
    row = await (
        await connection.execute(f"SELECT count(*) FROM {table} WHERE to_position = {FOREVER}")
    ).fetchone()
    assert row is not None
    return int(row[0])


PROGRESS_SECONDS = 3.0
WAIT_SECONDS = 0.5
_log = logging.getLogger("spawnlog.log")


async def bring_rows_up_to_date(conninfo: str) -> None:
    """Rebuild if a projection's rows are of another version than this program writes.

    Servers of the other version continue to read and write meanwhile. If several servers start at
    once, one rebuilds and the others wait for it.

    Raises:
        UserError: The rows cannot be rebuilt.
    """
    stale = await _stale_projections(conninfo)
    if stale:
        _log.info("the rows of %s are of an older version: rebuilding them", ", ".join(stale))
    reported_at = time.monotonic() - PROGRESS_SECONDS
    while await _stale_projections(conninfo):
        try:
            rebuilt = await rebuild(
                conninfo, compare=False, if_stale=True, on_progress=_ProgressLog()
            )
        except RebuildInProgressError:
            if time.monotonic() - reported_at >= PROGRESS_SECONDS:
                _log.info("another process is rebuilding the rows: waiting for it")
                reported_at = time.monotonic()
            await asyncio.sleep(WAIT_SECONDS)
        except CorruptHistoryError as error:
            raise UserError(f"the rows cannot be rebuilt from the log: {error}") from error
        else:
            _log.info("%d events rebuilt in %.1f s", rebuilt.events, rebuilt.seconds)


async def _stale_projections(conninfo: str) -> tuple[str, ...]:
    async with await open_connection(conninfo, application="start") as connection:
        return await stale_projections(connection)


class _ProgressLog:
    """Progress callback that logs each new step, and a running step every `PROGRESS_SECONDS`."""

    def __init__(self) -> None:
        self._step = ""
        self._logged_at = 0.0

    def __call__(self, progress: RebuildProgress) -> None:
        now = time.monotonic()
        if progress.step == self._step and now - self._logged_at < PROGRESS_SECONDS:
            return
        self._step, self._logged_at = progress.step, now
        _log.info("rebuild: %s, %d of %d", progress.step, progress.done, progress.total)
