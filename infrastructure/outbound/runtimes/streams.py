"""A program's stdout, whose end is not awaited for long once the program has ended, and the last of
its stderr."""

import asyncio
import codecs
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TypeVar

from infrastructure.outbound.child_processes.pipes import PipeReader
from infrastructure.outbound.masking.mask import NO_MASKING, MaskedText, Masker

DRAIN_SECONDS_MAX = 1.0


class DrainedPipe:
    """Read by one task. A process that is none of the program's may hold the pipe open: after the
    end of the program, reads wait for one second in all. What is there is read however late."""

    def __init__(self, pipe: PipeReader) -> None:
        self._pipe = pipe
        self._seconds_left: float | None = None
        self._limit: asyncio.Timeout | None = None

    async def read(self) -> bytes:
        """The next bytes, `b""` at the end. A cancelled read loses nothing."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self._seconds_left) as self._limit:
                return await self._pipe.read()
        except TimeoutError:
            self._pipe.close()
            return b""
        finally:
            self._limit = None
            if self._seconds_left is not None:
                self._seconds_left = max(0.0, self._seconds_left - (loop.time() - started))

    def program_ended(self) -> None:
        """From now on the end of the pipe is awaited for a second in all."""
        self._seconds_left = DRAIN_SECONDS_MAX
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX)

    def close(self) -> None:
        """Gives up what was not read. May be called again."""
        self._pipe.close()


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


class StderrTail:
    """Reads all of it and keeps the last `bytes_max` bytes, masked: masked before anything is
    dropped, so that no credential is cut before it is found. `is_cut` is True if something was
    dropped."""

    def __init__(
        self,
        pipe: PipeReader,
        bytes_max: int,
        threads: OutputThreads,
        masking: Masker = NO_MASKING,
    ) -> None:
        self._pipe = pipe
        self._bytes_max = bytes_max
        self._threads = threads
        self._one_at_a_time = Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._masked = MaskedText(masking)
        self._data = bytearray()
        self.is_cut = False

    async def fill(self) -> None:
        """Until the end of the pipe."""
        while data := await self._pipe.read():
            await self._threads.look(len(data), partial(self._take, data))

    def close(self) -> None:
        """Gives up what was not read. May be called again."""
        self._pipe.close()

    def text(self) -> str:
        """What was kept; undecodable bytes are replaced. Nothing is read after it is asked for."""
        with self._one_at_a_time:
            rest = self._decoder.decode(b"", final=True)
            self._keep(self._masked.take(rest) + self._masked.finish())
            return self._data.decode(errors="ignore")

    def _take(self, data: bytes) -> None:
        # Whoever waited for it may have given up: then `text` waits for it.
        with self._one_at_a_time:
            self._keep(self._masked.take(self._decoder.decode(data)))

    def _keep(self, text: str) -> None:
        self._data += text.encode(errors="replace")
        self.is_cut = self.is_cut or len(self._data) > self._bytes_max
        del self._data[: -self._bytes_max]
