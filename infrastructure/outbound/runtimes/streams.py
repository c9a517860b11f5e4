"""A program's stdout, whose end is not awaited for long once the program has ended."""

import asyncio

from infrastructure.outbound.child_processes.pipes import PipeReader

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
