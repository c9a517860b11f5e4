"""The threads in which much output is looked through, and nothing else is done."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 2
AT_ONCE_BYTES_MAX = 4_096
"""So much is looked through at once: a thread would take longer to begin."""

T = TypeVar("T")


class OutputThreads:
    """Masking a hostile line can take a second, in which this process has to be heard of. There
    are none before they are needed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "child-output")

    async def look(self, size: int, through: Callable[[], T]) -> T:
        """Look through so many bytes. Whoever is cancelled meanwhile leaves a thread at it."""
        if size <= AT_ONCE_BYTES_MAX:
            return through()
        return await asyncio.get_running_loop().run_in_executor(self._threads, through)

    def close(self) -> None:
        """End the threads; those at work end when that is done."""
        self._threads.shutdown(wait=False)
