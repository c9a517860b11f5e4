"""Server side of one program behind its guard."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from types import TracebackType

from infrastructure.outbound.child_processes.pipes import PipeReader, PipeWriter, open_pipes
from infrastructure.outbound.child_processes.program import Exit, Program
from infrastructure.outbound.child_processes.protocol import (
    CODE,
    ERROR,
    GO,
    HEARTBEAT,
    KILLED,
    READY,
    SIGNAL,
    decode_report,
    encode_spec,
)

REPORT_BYTES_MAX = 64 * 1024


class GuardReports:
    """Reader of a guard's status pipe, by callbacks of the event loop.

    It owns the pipe until the guard closes it. The futures never hold an exception.

    Attributes:
        ready: Process id of the guard, or None if the guard ended before it was ready.
        ended: How the program ended, once the guard has ended.
        reported: The exit that the guard reported, or None.
    """

    def __init__(self, descriptor: int, when_ended: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[int | None] = loop.create_future()
        self.ended: asyncio.Future[Exit] = loop.create_future()
        self._descriptor = descriptor
        self._loop = loop
        self._when_ended = when_ended
        self._text = b""
        self.reported: Exit | None = None
        self._guard_killed = False
        loop.add_reader(descriptor, self._take)

    def expect_no_report(self) -> None:
        """Note that the server kills the guard: without a report the program counts as killed."""
        self._guard_killed = True

    def _take(self) -> None:
        try:
            part = os.read(self._descriptor, 4096)
        except BlockingIOError:
            return
        if part and len(self._text) < REPORT_BYTES_MAX:
            self._text += part
            *lines, self._text = self._text.split(b"\n")
            for line in lines:
                self._read_line(*decode_report(line))
        elif not part:
            self._end()

    def _read_line(self, word: str, text: str) -> None:
        if word == READY:
            if not self.ready.done():
                self.ready.set_result(int(text))
        elif word == CODE:
            self.reported = Exit(code=int(text))
        elif word == SIGNAL:
            self.reported = Exit(signal=int(text))
        elif word in (KILLED, ERROR):
            self.reported = Exit(error=text, killed=word == KILLED)

    def _end(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        if not self.ready.done():
            self.ready.set_result(None)
        if not self.ended.done():
            text = "the guard process died and the program with it"
            self.ended.set_result(self.reported or Exit(error=text, killed=self._guard_killed))
        when_ended, self._when_ended = self._when_ended, _do_nothing
        when_ended()


def _do_nothing() -> None:
    """Do nothing. Replaces a callback after its call, so that it does not keep its owner alive."""


KILL_SECONDS_MAX = 15.0


class GuardedProcess:
    """A program with a running guard. `go()` executes it; after `wait()` all of its processes are
    dead.

    Read `stdout` and `stderr` with `await read(n)`, one task each. An unread pipe blocks the
    program, so read both while it runs. After the end they return the rest, then `b""`. As an async
    context manager, it kills the program and discards unread output.
    """

    guard_pid: int

    def __init__(
        self,
        program: Program,
        when_ended: Callable[["GuardedProcess"], None],
        silence_seconds_max: float | None = None,
    ) -> None:
        """Create the pipes.

        Args:
            program: The program.
            when_ended: Called when the guard has ended.
            silence_seconds_max: The guard kills the program after this many seconds without a
                heartbeat; None for no limit.

        Raises:
            OSError: There are no free file descriptors.
        """
        pipes = open_pipes(4 if program.stdin is None else 5)
        liveness_pipe, status, stdout, stderr = pipes[:4]
        self.guard_pid = 0
        self.stdout = PipeReader(stdout[0])
        self.stderr = PipeReader(stderr[0])
        self._stdin = PipeWriter(pipes[4][1]) if program.stdin is not None else None
        self._input = program.stdin or b""
        self._liveness_pipe = PipeWriter(liveness_pipe[1])
        self._reports = GuardReports(status[0], self._has_ended)
        self._when_ended = when_ended
        self._gone = False
        self._for_guard = [liveness_pipe[0], status[1], stdout[1], stderr[1]]
        self._for_guard += [pipes[4][0]] if program.stdin is not None else []
        self._spec = encode_spec(program.argv, program.env, program.cwd, silence_seconds_max)

    async def open(self, send: Callable[[list[int]], None]) -> bool:
        """Pass the guard's ends to `send` and wait for the guard.

        If this raises or returns False, nothing of the process remains.

        Returns:
            False if no guard was created.
        """
        try:
            try:
                send(self._for_guard)
            finally:
                self._close_guard_ends()
            self._liveness_pipe.write(self._spec)
            self._spec = b""
            pid = await asyncio.shield(self._reports.ready)
        except BaseException:
            self.abandon()
            raise
        if pid is None:
            self.abandon()
            return False
        self.guard_pid = pid
        return True

    def go(self) -> None:
        """Execute the program and start to write its input.

        No-op the second time, and if the process was killed before.
        """
        if not self._gone:
            self._gone = True
            self._liveness_pipe.write(GO)
            if self._stdin is not None:
                self._stdin.write(self._input, close_after=True)
                self._input = b""

    def heartbeat(self) -> None:
        """Send a heartbeat to the guard, without blocking.

        Skipped if the pipe is full, or if the guard does not have its whole spec yet.
        """
        if not self._spec:
            self._liveness_pipe.write_at_once(HEARTBEAT)

    async def wait(self) -> Exit:
        """Return how the program ended, once it has exited and every descendant is dead.

        Cancelling kills the program. For a timeout, wait for a task of it or call `kill()`.
        """
        try:
            return await asyncio.shield(self._reports.ended)
        except asyncio.CancelledError:
            self._let_go()
            raise

    async def kill(self) -> Exit:
        """Kill the program and its descendants; return when they are dead. Idempotent.

        If the guard does not answer within `KILL_SECONDS_MAX` seconds, it is killed too, and the
        program with it.
        """
        self._let_go()
        ended = self._reports.ended
        await asyncio.wait({ended}, timeout=KILL_SECONDS_MAX)
        if not ended.done() and self.guard_pid:
            self._reports.expect_no_report()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.guard_pid, signal.SIGKILL)
            await asyncio.wait({ended}, timeout=KILL_SECONDS_MAX)
        if not ended.done():
            return Exit(
                error="its guard process does not exit; its processes may still run", killed=True
            )
        return ended.result()

    def reported_error(self) -> str | None:
        """Return the error reported instead of a guard, or None."""
        reported = self._reports.reported
        return reported.error if reported is not None else None

    def abandon(self) -> None:
        """Release everything without waiting: the guard kills the program on its own."""
        self._close_guard_ends()
        self._let_go()
        self.stdout.close()
        self.stderr.close()

    async def __aenter__(self) -> "GuardedProcess":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.kill()
        finally:
            self.abandon()

    def _let_go(self) -> None:
        self._gone = True
        self._liveness_pipe.close()
        if self._stdin is not None:
            self._stdin.close()

    def _close_guard_ends(self) -> None:
        while self._for_guard:
            os.close(self._for_guard.pop())

    def _has_ended(self) -> None:
        self._let_go()
        self._when_ended(self)
