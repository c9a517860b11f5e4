"""Wait for transcripts to grow: one shared poll for all readers of this process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from application.log.event_log import LogUnavailableError

POLL_SECONDS = 0.25
_log = logging.getLogger("spawnlog.transcripts")


class _Waiter(NamedTuple):
    """Reader that has the entries of a run up to `after`."""

    run_id: UUID
    after: int
    grown: asyncio.Future[bool]


class TranscriptGrowth:
    """Poller for the last written entries of the runs that readers wait for; idle without readers.

    It does not flush entries that this process still buffers: batches are written often enough, and
    one run that cannot be written must not delay the readers of others.
    """

    def __init__(
        self, last_entries: Callable[[Collection[UUID]], Awaitable[Mapping[UUID, int]]]
    ) -> None:
        self._last_entries = last_entries
        self._waiters: set[_Waiter] = set()
        self._polling: asyncio.Task[None] | None = None

    async def wait(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Return True once the run has an entry after number `after`, False on timeout."""
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
                last = await self._last_entries({waiting.run_id for waiting in self._waiters})
                is_failing = False
            except Exception as error:
                if not is_failing:
                    is_away = isinstance(error, LogUnavailableError)
                    _log.warning("cannot read transcripts: %s", error, exc_info=not is_away)
                is_failing = True
            for waiter in self._waiters:
                if last.get(waiter.run_id, 0) > waiter.after and not waiter.grown.done():
                    waiter.grown.set_result(True)
            await asyncio.sleep(POLL_SECONDS)
