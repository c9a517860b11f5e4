"""Command runtime: one process per run, behind its guard."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Literal

from application.ports.credentials import Credential
from application.ports.runtimes import Launch, LaunchError, RuntimeEnd, TranscriptEntry
from domain.configuration.runtimes import CommandRuntime, Runtime
from domain.configuration.secrets import is_secret_name
from domain.delivery.output_notes import OutputNote, note_body, stderr_note, warning_note
from domain.delivery.transcript import RuntimeReading
from domain.values.text import replace_unstorable
from infrastructure.outbound.child_processes.guarded_process import GuardedProcess
from infrastructure.outbound.child_processes.launcher import ProcessLauncher, ProcessLaunchError
from infrastructure.outbound.child_processes.program import (
    Exit,
    holder_fell_silent,
    signal_name,
    was_executed,
)
from infrastructure.outbound.masking.mask import Masker
from infrastructure.outbound.runtimes.command_input import program_for
from infrastructure.outbound.runtimes.command_output import CommandOutput, command_output
from infrastructure.outbound.runtimes.streams import (
    DRAIN_SECONDS_MAX,
    DrainedPipe,
    OutputThreads,
    StderrTail,
)

STDERR_BYTES_MAX = 8 * 1024


def end_of(
    exit_: Exit,
    *,
    reading: RuntimeReading,
    stderr: str,
    too_much: str | None,
    notes: tuple[OutputNote, ...] = (),
) -> RuntimeEnd:
    """Return how a run ended, from the exit of its process.

    Args:
        exit_: Exit of the process.
        reading: Result and tokens.
        stderr: Masked tail of stderr.
        too_much: Which limit the run was killed for, in words; else None.
        notes: Notes on the output.
    """
    outcome: Literal["success", "error", "stopped", "unknown"] = "error"
    reason, error = "exit", None
    if too_much is not None:
        reason, error = "output_limit", f"ended because {too_much}"
    elif holder_fell_silent(exit_.error):
        # No one asked it to stop, so the outcome is not "stopped".
        reason, error = "interrupted", f"interrupted: {exit_.error}"
    elif exit_.killed:
        outcome, reason = "stopped", "stopped"
    elif exit_.signal is not None:
        reason, error = "signal", f"ended by signal {signal_name(exit_.signal)}"
    elif exit_.error is not None:
        executed = was_executed(exit_.error)
        reason = "interrupted" if executed else "not_executable"
        error = exit_.error if executed else f"{exit_.error}; {_advice(exit_.error)}"
        if executed:
            # The guard died, so it is unknown whether the program did its work.
            outcome = "unknown"
    elif exit_.code == 0:
        outcome = "success"
    else:
        error = f"exited with code {exit_.code}"
    tail = printable_tail(stderr)
    return RuntimeEnd(
        outcome=outcome,
        reason=reason,
        exit_code=exit_.code,
        signal=exit_.signal,
        result=reading.result,
        error=f"{error}: {tail}" if error and tail else error,
        usages=reading.usages,
        notes=notes,
    )


def secrets_of(launch: Launch) -> tuple[str, ...]:
    """Return the values to mask: the token, the credentials, and variables that are named like
    secrets."""
    named = [
        value
        for name, value in launch.environment.items()
        if isinstance(value, Credential) or is_secret_name(name)
    ]
    return tuple(secret for secret in (*named, launch.token) if secret)


def printable_tail(stderr: str) -> str:
    """Return the last 8 KiB of a text, stripped."""
    tail = replace_unstorable(stderr.strip()).encode()[-STDERR_BYTES_MAX:]
    return tail.decode(errors="ignore").strip()


_ADVICE: Mapping[str, str] = {
    "the working directory": "make that directory, or correct the runtime's cwd",
    "Permission denied": "make it executable (chmod +x), or correct the runtime's command",
    "Exec format error": "begin it with a line such as #!/bin/sh, or correct the runtime's command",
    "Argument list too long": 'set the runtime\'s input to "stdin-json"',
    "No such file": "install it or its interpreter, or correct the runtime's command",
}


def _advice(error: str) -> str:
    found = (advice for sign, advice in _ADVICE.items() if sign in error)
    return next(found, "correct the runtime's command")


OUTPUT_BYTES_MAX = 64 * 1024 * 1024


class CommandRuntimes:
    """Factory of command sessions.

    Args:
        launcher: Starts the processes.
        server: Environment of the server.
        folder: Base of relative workspaces, and working directory of children without a workspace.
    """

    def __init__(
        self, launcher: ProcessLauncher, *, server: Mapping[str, str], folder: str
    ) -> None:
        self._launcher = launcher
        self._server = server
        self._folder = os.path.abspath(folder)
        self._threads = OutputThreads()

    def close(self) -> None:
        """Stop the threads. No session can be opened afterward."""
        self._threads.close()

    def is_in_process(self, _: Runtime) -> bool:
        return False

    async def open(self, launch: Launch) -> "CommandSession":
        """Create a guard for the program; `go` executes it.

        Raises:
            LaunchError: The runtime is not a command, or no process could be started.
        """
        runtime = launch.runtime
        if not isinstance(runtime, CommandRuntime):
            raise LaunchError(
                "not_executable", f'a runtime of type "{runtime.type}" is not a command'
            )
        program = program_for(launch, runtime, server=self._server, folder=self._folder)
        try:
            process = await self._launcher.open(program)
        except (ProcessLaunchError, OSError) as error:
            text = f"no process could be started for agent {launch.agent_id}: {error}"
            raise LaunchError("not_executable", text) from error
        masking = Masker(secrets_of(launch))
        output = command_output(runtime.output, masking)
        return CommandSession(process, output, masking, self._threads)


class CommandSession:
    """One process. It ends by its own exit, at a limit of its output, or by `kill`."""

    def __init__(
        self,
        process: GuardedProcess,
        output: CommandOutput,
        masking: Masker,
        threads: OutputThreads,
    ) -> None:
        self._process = process
        self._stdout = DrainedPipe(process.stdout)
        self._stderr = StderrTail(process.stderr, STDERR_BYTES_MAX, threads, masking)
        self._output_entries = _OutputEntries(self._stdout, output, threads)
        self._output = output
        self._ending = asyncio.create_task(self._wait_for_exit())
        self._notes = _OutputNotes(output, self._stderr)
        self._entries = _CommandEntries(
            self._output_entries, self._process, self._ending, self._notes
        )

    def go(self) -> None:
        """Execute the program."""
        self._process.go()

    def ready_entries(self) -> None:
        """Return None: a program has no entries ready."""

    def entries(self) -> AsyncIterator[TranscriptEntry]:
        """Return the iterator of entries and then notes, always the same one.

        A cancelled step loses nothing.
        """
        return self._entries

    async def end(self) -> RuntimeEnd:
        """Read and drop unread entries, and return how the run ended."""
        async for _ in self._entries:
            pass
        return end_of(
            await asyncio.shield(self._ending),
            reading=self._output.reading(),
            stderr=self._stderr.text(),
            too_much=self._output_entries.too_much,
            notes=self._notes.read(),
        )

    async def kill(self) -> None:
        """Kill the process and everything it started. Its output until then can still be read."""
        await self._process.kill()
        await asyncio.shield(self._ending)

    async def _wait_for_exit(self) -> Exit:
        tail = asyncio.create_task(self._stderr.fill())
        try:
            exit_ = await self._process.wait()
            self._stdout.program_ended()
            await asyncio.wait({tail}, timeout=DRAIN_SECONDS_MAX)
        finally:
            self._stderr.close()
            tail.cancel()
            await asyncio.gather(tail, return_exceptions=True)
        return exit_


class _OutputEntries:
    """Iterator over the entries of the output, within the limits.

    `too_much` says which limit was exceeded.
    """

    def __init__(self, stdout: DrainedPipe, output: CommandOutput, threads: OutputThreads) -> None:
        self.too_much: str | None = None
        self._stdout = stdout
        self._output = output
        self._threads = threads
        self._bytes_left = OUTPUT_BYTES_MAX
        self._read: Iterator[TranscriptEntry] = iter(())
        self._reading: asyncio.Future[list[TranscriptEntry]] | None = None
        self._at_end = False

    async def next(self) -> TranscriptEntry | None:
        """Return the next entry; None at the end, or when a limit was exceeded."""
        while True:
            for entry in self._read:
                return entry
            if self._reading is None:
                self.too_much = self.too_much or self._output.too_long
                if self._at_end or self.too_much:
                    return None
                self._reading = self._take(await self._stdout.read())
            # If this step is cancelled, the next one takes the result.
            self._read = iter(await asyncio.shield(self._reading))
            self._reading = None

    def _take(self, data: bytes) -> "asyncio.Future[list[TranscriptEntry]]":
        self._at_end = not data
        read = self._output.take(data[: self._bytes_left]) if data else self._output.finish()
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self.too_much = f"it printed more than {OUTPUT_BYTES_MAX} bytes"
        # At the end, all pending output is processed.
        size = len(data) or OUTPUT_BYTES_MAX
        return asyncio.ensure_future(self._threads.look(size, lambda: list(read)))


class _OutputNotes:
    """Notes on the output of a process: warnings, and the tail of stderr."""

    def __init__(self, output: CommandOutput, stderr: StderrTail) -> None:
        self._output = output
        self._stderr = stderr
        self._notes: tuple[OutputNote, ...] | None = None

    def read(self) -> tuple[OutputNote, ...]:
        """Return the notes. Call it after the output was read and the process has ended."""
        if self._notes is None:
            tail = printable_tail(self._stderr.text())
            found = (
                warning_note(self._output.warnings()),
                stderr_note(tail, is_cut=self._stderr.is_cut),
            )
            self._notes = tuple(note for note in found if note is not None)
        return self._notes


class _CommandEntries:
    """Iterator over entries, then notes once the process has ended.

    It kills a process that exceeds an output limit.
    """

    def __init__(
        self,
        output: _OutputEntries,
        process: GuardedProcess,
        ending: asyncio.Task[Exit],
        notes: _OutputNotes,
    ) -> None:
        self._output_entries = output
        self._process = process
        self._ending = ending
        self._notes = notes
        self._notes_left: Iterator[OutputNote] | None = None

    def __aiter__(self) -> "_CommandEntries":
        return self

    async def __anext__(self) -> TranscriptEntry:
        entry = await self._output_entries.next()
        if entry is not None:
            return entry
        if self._output_entries.too_much is not None:
            await self._process.kill()
        await asyncio.shield(self._ending)
        self._process.stdout.close()
        if self._notes_left is None:
            self._notes_left = iter(self._notes.read())
        for note in self._notes_left:
            return TranscriptEntry("progress", note_body(note))
        raise StopAsyncIteration
