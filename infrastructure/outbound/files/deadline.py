"""Deadlines for work in threads, and the thread pools for attachments.

A thread cannot be killed from outside, so its work checks the deadline between steps.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

from application.steps.step import STEPS_AT_ONCE_MAX

T = TypeVar("T")


class DeadlineExceededError(Exception):
    """The time is up, or the caller was cancelled."""


class Deadline:
    """A time limit that can also be withdrawn early."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._withdrawn = threading.Event()

    def withdraw(self) -> None:
        """Withdraw the deadline: the next check raises."""
        self._withdrawn.set()

    def go_on(self) -> None:
        """Raise DeadlineExceeded, with the reason, if the time is up or the deadline is
        withdrawn."""
        if self._withdrawn.is_set():
            raise DeadlineExceededError("it was interrupted")
        if time.monotonic() >= self._end:
            raise DeadlineExceededError(f"it took longer than {self._seconds:g} seconds")


async def run_with_deadline(
    work: Callable[[Deadline], T], threads: Executor, *, seconds: float
) -> T:
    """Run work in a thread and return its result.

    The time counts from now, so a thread should be free. If this call is cancelled, it returns
    after the work has ended, or after `seconds` more.

    Args:
        work: Gets the deadline and checks it between steps.
        threads: Thread pool.
        seconds: Time limit.

    Raises:
        DeadlineExceededError: The work took too long.
    """
    deadline = Deadline(seconds)
    task = asyncio.ensure_future(
        asyncio.get_running_loop().run_in_executor(threads, work, deadline)
    )
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        deadline.withdraw()
        await asyncio.wait([task], timeout=seconds)
        raise


REMOVALS_AT_ONCE_MAX = 4


class AttachmentThreads:
    """Thread pools for attachments. Threads are started on demand."""

    def __init__(self) -> None:
        self._writers = ThreadPoolExecutor(STEPS_AT_ONCE_MAX, "attachments-write")
        self._removers = ThreadPoolExecutor(REMOVALS_AT_ONCE_MAX, "attachments-remove")
        self._removals = asyncio.Semaphore(REMOVALS_AT_ONCE_MAX)

    async def write(self, work: Callable[[Deadline], T], *, seconds: float) -> T:
        """Run work at once. A thread is free, because no more than `STEPS_AT_ONCE_MAX` writes run
        at a time."""
        return await run_with_deadline(work, self._writers, seconds=seconds)

    async def remove(self, work: Callable[[Deadline], T], *, seconds: float) -> T:
        """Run work when a thread is free. Its time counts from then, because many removals may be
        due."""
        async with self._removals:
            return await run_with_deadline(work, self._removers, seconds=seconds)

    def close(self) -> None:
        """Shut the pools down without waiting for running work."""
        for threads in (self._writers, self._removers):
            threads.shutdown(wait=False)
