"""Pipes read and written on the event loop, without transports.

A reader keeps nothing: what is not yet read stays in the kernel's buffer (64 KiB), and a program
that prints on without being read simply waits.
"""

import asyncio
import contextlib
import os

CHUNK_BYTES = 64 * 1024


class PipeReader:
    """The read end of a pipe. Owns the descriptor and closes it at the end of the data."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._reading = False

    async def read(self, bytes_max: int = CHUNK_BYTES) -> bytes:
        """The next bytes, at most `bytes_max`; `b""` at the end, and after `close()`.

        A cancelled read loses nothing. Raises RuntimeError when another task is already reading.
        """
        if self._reading:
            raise RuntimeError("another task is already reading this pipe")
        self._reading = True
        try:
            # Before the read, so that a fast writer leaves the loop to others and no data is lost.
            await asyncio.sleep(0)
            return await self._next(bytes_max)
        finally:
            self._reading = False

    async def _next(self, bytes_max: int) -> bytes:
        while self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, bytes_max)
            except BlockingIOError:
                await self._readable()
                continue
            if not data:
                self.close()
            return data
        return b""

    async def _readable(self) -> None:
        descriptor = self._descriptor
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiter = waiter
        self._loop.add_reader(descriptor, _wake, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if self._descriptor == descriptor:
                self._loop.remove_reader(descriptor)

    def close(self) -> None:
        """Gives the rest up; a read that waits returns `b""`. May be called again."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self._waiter is not None:
            self._loop.remove_reader(descriptor)
            _wake(self._waiter)
        os.close(descriptor)

    def __del__(self) -> None:
        # Nobody can read any more, so nobody waits: only the descriptor is left.
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


class PipeWriter:
    """The write end of a pipe. Writes in the background; a reader that is gone ends it quietly."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._pending = memoryview(b"")
        self._waiting = False
        self._close_after = False

    def write(self, data: bytes, *, close_after: bool = False) -> None:
        """Sends `data` after what still waits; with `close_after` the pipe ends behind it."""
        if self._descriptor < 0:
            return
        self._pending = memoryview(bytes(self._pending) + data if self._pending else data)
        self._close_after = close_after
        if not self._waiting:
            self._flush()

    def write_at_once(self, data: bytes) -> None:
        """Sends `data` only if nothing waits before it and there is room now; else forgets it."""
        if self._descriptor >= 0 and not self._pending:
            # A reader that is gone is noticed by whoever waits for it.
            with contextlib.suppress(OSError):
                os.write(self._descriptor, data)

    def _flush(self) -> None:
        try:
            if self._pending:
                written = os.write(self._descriptor, self._pending[:CHUNK_BYTES])
                self._pending = self._pending[written:]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if self._pending:
            if not self._waiting:
                self._waiting = True
                self._loop.add_writer(self._descriptor, self._flush)
        elif self._close_after:
            self.close()
        else:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._descriptor)

    def close(self) -> None:
        """Drops what was not written yet. May be called again."""
        if self._descriptor >= 0:
            self._stop_waiting()
            os.close(self._descriptor)
            self._descriptor = -1
            self._pending = memoryview(b"")


def open_pipes(count: int) -> list[tuple[int, int]]:
    """`count` pipes as (read end, write end), or OSError and none."""
    with contextlib.ExitStack() as undo:
        pipes = []
        for _ in range(count):
            ends = os.pipe()
            undo.callback(os.close, ends[0])
            undo.callback(os.close, ends[1])
            pipes.append(ends)
        undo.pop_all()
    return pipes


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
