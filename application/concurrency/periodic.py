"""Background tasks that run when notified, and periodically."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from application.concurrency import tasks
from application.log.event_log import LogUnavailableError

AWAY_SECONDS = 0.5
_log = logging.getLogger("spawnlog.work")


class PeriodicTask:
    """Background task that calls `work` when notified, and at least every `seconds`. Failures are
    logged, not fatal."""

    def __init__(self, name: str, work: Callable[[], Awaitable[object]], seconds: float) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def notify(self) -> None:
        """Call the work soon."""
        self._woken.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._repeat(), name=self._name)

    async def close(self) -> None:
        """Cancel the task, even in the middle of its work."""
        if self._task is not None:
            await tasks.cancel_all([self._task])
            self._task = None

    async def _repeat(self) -> None:
        away = False
        while True:
            self._woken.clear()
            try:
                await self._work()
                away = False
            except LogUnavailableError as why:
                # Retry soon: if the lease is not renewed in time, every held run is lost.
                if not away:
                    _log.warning("%s: %s", self._name, why)
                away = True
                await asyncio.sleep(min(self._seconds, AWAY_SECONDS))
                continue
            except Exception:
                _log.exception("%s failed and will be retried", self._name)
                await asyncio.sleep(self._seconds)
            timer = asyncio.get_running_loop().call_later(self._seconds, self._woken.set)
            try:
                await self._woken.wait()
            finally:
                timer.cancel()
