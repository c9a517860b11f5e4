"""Output streams of a program: stdout with a bounded drain, and the tail of stderr."""

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
    """Pipe for one reading task, with a bounded wait after the program has ended.

    A process that does not belong to the program may hold the pipe open. After the end of the
    program, reads wait for one second in total. Available data is read however late.
    """

    def __init__(self, pipe: PipeReader) -> None:
        self._pipe = pipe
        self._seconds_left: float | None = None
        self._limit: asyncio.Timeout | None = None

    async def read(self) -> bytes:
        """Return the next bytes, `b""` at the end. A cancelled read loses nothing."""
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
        """Limit the wait for the end of the pipe to one second in total from now on."""
        self._seconds_left = DRAIN_SECONDS_MAX
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX)

    def close(self) -> None:
        """Discard unread data. Idempotent."""
        self._pipe.close()


THREADS = 2
AT_ONCE_BYTES_MAX = 4_096
"""Output up to this size is processed on the event loop: a thread would take longer to start."""


T = TypeVar("T")


class OutputThreads:
    """Threads for masking, started on demand.

    Masking a hostile line can take a second, during which the event loop must keep running.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "child-output")

    async def look(self, size: int, through: Callable[[], T]) -> T:
        """Run the work on the event loop or in a thread, depending on `size` in bytes.

        If this call is cancelled, the thread continues.
        """
        if size <= AT_ONCE_BYTES_MAX:
            return through()
        return await asyncio.get_running_loop().run_in_executor(self._threads, through)

    def close(self) -> None:
        """Stop the threads without waiting for running work."""
        self._threads.shutdown(wait=False)


class StderrTail:
    """Reader of all of stderr that keeps its last `bytes_max` bytes, masked.

    Text is masked before anything is dropped, so that no credential is cut before it is found.
    `is_cut` is True if something was dropped.
    """

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
        """Read until the end of the pipe."""
        while data := await self._pipe.read():
            await self._threads.look(len(data), partial(self._take, data))

    def close(self) -> None:
        """Discard unread data. Idempotent."""
        self._pipe.close()

    def text(self) -> str:
        """Return the kept text, with undecodable bytes replaced. Call it at the end: it finishes
        the masking."""
        with self._one_at_a_time:
            rest = self._decoder.decode(b"", final=True)
            self._keep(self._masked.take(rest) + self._masked.finish())
            return self._data.decode(errors="ignore")

    def _take(self, data: bytes) -> None:
        # The waiting task may have been cancelled; the lock makes `text` wait for this work.
        with self._one_at_a_time:
            self._keep(self._masked.take(self._decoder.decode(data)))

    def _keep(self, text: str) -> None:
        self._data += text.encode(errors="replace")
        self.is_cut = self.is_cut or len(self._data) > self._bytes_max
        del self._data[: -self._bytes_max]
