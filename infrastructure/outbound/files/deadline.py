"""How long work in a thread may go on. A thread cannot be ended from outside, so it asks. And the
threads for attachments, which do nothing else."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from application.steps.step import STEPS_AT_ONCE_MAX

T = TypeVar("T")


class DeadlineExceeded(Exception):
    """The time is over, or nobody waits for the work any more."""


class Deadline:
    """Seconds from now on, and a word that may come earlier."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Nothing more is to be begun."""
        self._withdrawn.set()

    def go_on(self) -> None:
        """Nothing while there is time; else raises `DeadlineExceeded`, whose text says why."""
        if self._withdrawn.is_set():
            raise DeadlineExceeded("it was interrupted")
        if time.monotonic() >= self._end:
            raise DeadlineExceeded(f"it took longer than {self._seconds:g} seconds")


async def run_with_deadline(
    work: Callable[[Deadline], T], threads: Executor, *, seconds: float
) -> T:
    """The result of work that asks its allowance before each step.

    The seconds count from now on, so one of the threads should be free. When this call is
    cancelled, it ends after the work has, or after as many seconds again.
    """
    allowance = Deadline(seconds)
    task = asyncio.ensure_future(
        asyncio.get_running_loop().run_in_executor(threads, work, allowance)
    )
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        allowance.withdraw()
        await asyncio.wait([task], timeout=seconds)
        raise


REMOVALS_AT_ONCE_MAX = 4


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
