"""The threads in which attachments are written and removed, and nothing else is done."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from application.steps.step import STEPS_AT_ONCE_MAX
from infrastructure.outbound.files.deadline import Deadline, run_with_deadline

REMOVALS_AT_ONCE_MAX = 4

T = TypeVar("T")


class AttachmentThreads:
    """There are none before they are needed."""

    def __init__(self) -> None:
        self._writers = ThreadPoolExecutor(STEPS_AT_ONCE_MAX, "attachments-write")
        self._removers = ThreadPoolExecutor(REMOVALS_AT_ONCE_MAX, "attachments-remove")
        self._removals = asyncio.Semaphore(REMOVALS_AT_ONCE_MAX)

    async def write(self, work: Callable[[Deadline], T], *, seconds: float) -> T:
        """Its time counts from now on, and a thread is free: no more is begun at once."""
        return await run_with_deadline(work, self._writers, seconds=seconds)

    async def remove(self, work: Callable[[Deadline], T], *, seconds: float) -> T:
        """Many may be due at once. The time of each counts from when it has a thread."""
        async with self._removals:
            return await run_with_deadline(work, self._removers, seconds=seconds)

    def close(self) -> None:
        """End the threads; those at work end when that is done."""
        for threads in (self._writers, self._removers):
            threads.shutdown(wait=False)
