"""Run one program to completion under limits and collect its output."""

import asyncio
import time
from dataclasses import dataclass

from infrastructure.outbound.child_processes.guarded_process import GuardedProcess
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.child_processes.pipes import PipeReader
from infrastructure.outbound.child_processes.program import Exit, Program

DRAIN_SECONDS_MAX = 1.0


@dataclass(frozen=True)
class ProgramResult:
    """Output and exit of a program.

    Attributes:
        stdout: The first bytes, at most `output_bytes_max`.
        stderr_tail: The last bytes, at most `stderr_bytes_max`.
        exit: How the program ended.
        timed_out: True if the program was killed by the timeout.
        overflowed: True if the program was killed because it printed too much to stdout.
        duration_seconds: From the execution to the end of the last process.
    """

    stdout: bytes
    stderr_tail: bytes
    exit: Exit
    timed_out: bool
    overflowed: bool
    duration_seconds: float


async def run_to_end(
    launcher: ProcessLauncher,
    program: Program,
    *,
    timeout_seconds: float,
    output_bytes_max: int,
    stderr_bytes_max: int,
) -> ProgramResult:
    """Execute the program and wait for its end. Cancelling kills it.

    Args:
        launcher: Starts the program.
        program: The program.
        timeout_seconds: The program is killed after this time.
        output_bytes_max: The program is killed if it prints more to stdout. The output until then
            is kept.
        stderr_bytes_max: Only this many bytes at the end of stderr are kept; stderr has no limit.

    Raises:
        ProcessLaunchError: No guard could be created.
        OSError: The server has no free file descriptors.
    """
    async with await launcher.open(program) as process:
        head = _Head(process.stdout, output_bytes_max)
        tail = _Tail(process.stderr, stderr_bytes_max)
        pumps = {asyncio.create_task(head.fill()), asyncio.create_task(tail.fill())}
        try:
            started = time.monotonic()
            process.go()
            timed_out = not await _end_or_overflow(process, head, timeout_seconds)
            exit_ = await process.kill()
            duration = time.monotonic() - started
            drained, _ = await asyncio.wait(pumps, timeout=DRAIN_SECONDS_MAX)
            for pump in drained:
                pump.result()
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        return ProgramResult(
            stdout=bytes(head.data),
            stderr_tail=bytes(tail.data),
            exit=exit_,
            timed_out=timed_out and exit_.error is not None,
            overflowed=head.overflowed.is_set(),
            duration_seconds=duration,
        )


async def _end_or_overflow(process: GuardedProcess, head: "_Head", timeout_seconds: float) -> bool:
    """Return True if the program ended or printed too much, False on timeout."""
    watched = {
        asyncio.create_task(process.wait()),
        asyncio.create_task(head.overflowed.wait()),
    }
    try:
        done, _ = await asyncio.wait(
            watched, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        return bool(done)
    finally:
        for task in watched:
            task.cancel()
        await asyncio.gather(*watched, return_exceptions=True)


class _Head:
    """The first bytes of a pipe. If there are more, it stops reading and sets `overflowed`."""

    def __init__(self, pipe: PipeReader, bytes_max: int) -> None:
        self._pipe = pipe
        self._bytes_max = bytes_max
        self.data = bytearray()
        self.overflowed = asyncio.Event()

    async def fill(self) -> None:
        while data := await self._pipe.read():
            self.data += data[: self._bytes_max - len(self.data) + 1]
            if len(self.data) > self._bytes_max:
                del self.data[self._bytes_max :]
                self.overflowed.set()
                return


class _Tail:
    """The last bytes of a pipe."""

    def __init__(self, pipe: PipeReader, bytes_max: int) -> None:
        self._pipe = pipe
        self._bytes_max = bytes_max
        self.data = bytearray()

    async def fill(self) -> None:
        while data := await self._pipe.read():
            self.data += data
            if len(self.data) > self._bytes_max:
                del self.data[: len(self.data) - self._bytes_max]
