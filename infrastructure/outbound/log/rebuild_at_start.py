"""Rows of an older version are made anew before a server works on them."""

import asyncio
import logging
import time

from domain.values.refusals import CorruptHistory
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.rebuild.rebuild import RebuildUnderWay, rebuild
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.log.schema.projection_versions import stale_projections
from infrastructure.rebuild_progress import RebuildProgress

PROGRESS_SECONDS = 3.0
WAIT_SECONDS = 0.5

_log = logging.getLogger("spawnlog.log")


async def bring_rows_up_to_date(conninfo: str) -> None:
    """Rebuild when a projection's rows are of another version than this program makes; servers of
    that version go on reading and writing meanwhile. Of several that start at once, one rebuilds
    and the others wait for it. `UserError` when it cannot be done."""
    stale = await _stale_projections(conninfo)
    if stale:
        _log.info("the rows of %s are of an older version: they are made anew", ", ".join(stale))
    told = time.monotonic() - PROGRESS_SECONDS
    while await _stale_projections(conninfo):
        try:
            rebuilt = await rebuild(conninfo, compare=False, on_progress=_ProgressLog())
        except RebuildUnderWay:
            if time.monotonic() - told >= PROGRESS_SECONDS:
                _log.info("another process rebuilds the rows: waiting for it")
                told = time.monotonic()
            await asyncio.sleep(WAIT_SECONDS)
        except CorruptHistory as error:
            raise UserError(f"the rows cannot be made anew from the log: {error}") from error
        else:
            _log.info("%d events rebuilt in %.1f s", rebuilt.events, rebuilt.seconds)


async def _stale_projections(conninfo: str) -> tuple[str, ...]:
    async with await open_connection(conninfo, application="start") as connection:
        return await stale_projections(connection)


class _ProgressLog:
    """A line of log at each new step, and now and then in between."""

    def __init__(self) -> None:
        self._step = ""
        self._told = 0.0

    def __call__(self, progress: RebuildProgress) -> None:
        now = time.monotonic()
        if progress.step == self._step and now - self._told < PROGRESS_SECONDS:
            return
        self._step, self._told = progress.step, now
        _log.info("rebuild: %s, %d of %d", progress.step, progress.done, progress.total)
