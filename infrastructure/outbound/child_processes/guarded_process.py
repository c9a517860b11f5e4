"""The holder's side of one program behind its guard."""

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
    """Owns the status pipe until the guard closes it. No task: callbacks of the loop.

    `ready` becomes the guard's pid, or None when the guard ended before it was ready. `ended`
    becomes the exit, once the guard has ended. Neither ever holds an exception. `reported` is what
    the guard itself said, if it said it.
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
        self._gate_killed = False
        loop.add_reader(descriptor, self._take)

    def expect_no_report(self) -> None:
        """The holder kills the guard: what it did not report any more counts as killed."""
        self._gate_killed = True

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
            text = "the gate of the program died; the program was killed with it"
            self.ended.set_result(self.reported or Exit(error=text, killed=self._gate_killed))
        when_ended, self._when_ended = self._when_ended, _do_nothing
        when_ended()


def _do_nothing() -> None:
    """In the place of a call that was made: the owner must not be kept alive by it."""


KILL_SECONDS_MAX = 15.0


class GuardedProcess:
    """A program whose guard stands. Executed at `go()`; dead, with all below it, after `wait()`.

    `stdout` and `stderr` are read with `await read(n)`, by one task each; they hold back a program
    that is not read, so read both while it runs. After the end they give what is left, then `b""`.
    As an async context manager it ends the program and gives up what was not read.
    """

    guard_pid: int

    def __init__(
        self,
        program: Program,
        when_ended: Callable[["GuardedProcess"], None],
        silence_seconds_max: float | None = None,
    ) -> None:
        """Makes the pipes; raises OSError when there are no descriptors left."""
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
        """Hands the guard's ends to `send` and waits for the guard; false when none came to be.

        When this raises or returns false, nothing is left of the process.
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
        """Executes the program now and begins to write its input. Does nothing the second time,
        nor when the process was killed before."""
        if not self._gone:
            self._gone = True
            self._liveness_pipe.write(GO)
            if self._stdin is not None:
                self._stdin.write(self._input, close_after=True)
                self._input = b""

    def heartbeat(self) -> None:
        """Tells the guard that its holder is alive. Never waits; a guard that does not listen is
        passed over, as is one that has not got its whole specification yet."""
        if not self._spec:
            self._liveness_pipe.write_at_once(HEARTBEAT)

    async def wait(self) -> Exit:
        """How it ended, when the leader has exited and every descendant is dead.

        Cancelling this kills the program; for a time limit, wait for a task of it or call `kill()`.
        """
        try:
            return await asyncio.shield(self._reports.ended)
        except asyncio.CancelledError:
            self._let_go()
            raise

    async def kill(self) -> Exit:
        """Ends the program and all below it; returns when they are dead. May be called again.

        A guard that has not answered after `KILL_SECONDS_MAX` seconds is itself killed, and the
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
            return Exit(error="its gate does not end; what it started may still run", killed=True)
        return ended.result()

    def reported_error(self) -> str | None:
        """What was said of a guard that never came to be, if anything was."""
        reported = self._reports.reported
        return reported.error if reported is not None else None

    def abandon(self) -> None:
        """Lets go of everything without waiting: the guard ends what there is, unseen."""
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
