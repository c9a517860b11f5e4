"""Waiting for transcripts to grow: one look-up at a time for all who wait in this process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from application.log.event_log import LogUnavailable

POLL_SECONDS = 0.25
_log = logging.getLogger("spawnlog.transcripts")


class _Waiter(NamedTuple):
    """A reader that has the entries of a run up to `after`."""

    run_id: UUID
    after: int
    grown: asyncio.Future[bool]


class TranscriptGrowth:
    """Looks up the last written entries of the runs that readers wait for; at rest without readers.

    It does not write the entries that this process still has: batches are written often enough, and
    one run that cannot be written must not keep the readers of others waiting.
    """

    def __init__(
        self, last_entries: Callable[[Collection[UUID]], Awaitable[Mapping[UUID, int]]]
    ) -> None:
        self._last_entries = last_entries
        self._waiters: set[_Waiter] = set()
        self._polling: asyncio.Task[None] | None = None

    async def wait(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Return True once the run has an entry behind number `after`, False on timeout."""
        waiter = _Waiter(run_id, after, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name="transcript growth")
        try:
            async with asyncio.timeout(timeout_seconds):
                return await waiter.grown
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)
            if not self._waiters and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    async def _poll(self) -> None:
        is_failing = False
        while True:
            last: Mapping[UUID, int] = {}
            try:
                last = await self._last_entries({one.run_id for one in self._waiters})
                is_failing = False
            except Exception as error:
                if not is_failing:
                    is_away = isinstance(error, LogUnavailable)
                    _log.warning("cannot read transcripts: %s", error, exc_info=not is_away)
                is_failing = True
            for waiter in self._waiters:
                if last.get(waiter.run_id, 0) > waiter.after and not waiter.grown.done():
                    waiter.grown.set_result(True)
            await asyncio.sleep(POLL_SECONDS)
