"""Pipes on the event loop, without transports.

A reader buffers nothing. Unread data stays in the kernel's buffer (64 KiB), and a program that
writes more blocks until it is read.
"""

import asyncio
import contextlib
import os

CHUNK_BYTES = 64 * 1024


class PipeReader:
    """Read end of a pipe. Owns the descriptor and closes it at the end of the data."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._reading = False

    async def read(self, bytes_max: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes, at most `bytes_max`; `b""` at the end and after `close()`.

        A cancelled read loses no data.

        Raises:
            RuntimeError: Another task is reading this pipe.
        """
        if self._reading:
            raise RuntimeError("another task is already reading this pipe")
        self._reading = True
        try:
            # Yield to the loop even if data is ready. Before the read, so that a cancellation here
            # loses no data.
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
        """Discard the rest. A pending read returns `b""`. Idempotent."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self._waiter is not None:
            self._loop.remove_reader(descriptor)
            _wake(self._waiter)
        os.close(descriptor)

    def __del__(self) -> None:
        # No task can wait on an unreferenced reader, so only the descriptor needs closing.
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)


class PipeWriter:
    """Write end of a pipe. Writes in the background; if the reader is gone, it closes silently."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._pending = memoryview(b"")
        self._waiting = False
        self._close_after = False

    def write(self, data: bytes, *, close_after: bool = False) -> None:
        """Write `data` after pending data; with `close_after`, close the pipe after it."""
        if self._descriptor < 0:
            return
        self._pending = memoryview(bytes(self._pending) + data if self._pending else data)
        self._close_after = close_after
        if not self._waiting:
            self._flush()

    def write_at_once(self, data: bytes) -> None:
        """Write `data` if nothing is pending and the pipe has room; else drop it."""
        if self._descriptor >= 0 and not self._pending:
            # If the reader is gone, the task that waits for its end notices.
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
        """Drop pending data and close the pipe. Idempotent."""
        if self._descriptor >= 0:
            self._stop_waiting()
            os.close(self._descriptor)
            self._descriptor = -1
            self._pending = memoryview(b"")


def open_pipes(count: int) -> list[tuple[int, int]]:
    """Return `count` pipes as (read end, write end). If one fails, close all and raise OSError."""
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
