"""Guard process: a small process between the server and one program.

It executes the program after the go byte. It kills every descendant, reports how the program ended
and exits in three cases: the liveness pipe closes (the server died or killed the program), the pipe
is silent (the server is frozen or has lost its lease), or the program exits.

On Linux the guard is the subreaper of its descendants, so those that double-fork or start a session
of their own come back to it. If the guard is killed with SIGKILL, the program dies with it. macOS
has neither: the guard kills the process group of the program, and a descendant that left the group
survives.
"""

import contextlib
import errno
import math
import os
import select
import signal
import sys
from typing import NoReturn

from application.concurrency.running_time import RunningTime
from infrastructure.outbound.child_processes.program import HOLDER_FELL_SILENT
from infrastructure.outbound.child_processes.protocol import (
    CODE,
    ERROR,
    GO,
    KILLED,
    LENGTH_BYTES,
    READY,
    SIGNAL,
    ProgramSpec,
    decode_spec,
    encode_report,
)
from infrastructure.outbound.child_processes.reaper import ChildExits, ProcessControl, end_children

# Every descriptor of the guard is close-on-exec; closing them up to this one is a second safeguard.
DESCRIPTOR_MAX = 256
NEVER_EXECUTED = 127


def execute_program(
    spec: ProgramSpec,
    streams: tuple[int, int, int],
    guard_pid: int,
    failure: int,
    process_control: ProcessControl,
) -> NoReturn:
    """Execute the program in the forked child, or write one line to `failure` that says why not."""
    place, is_looked_for = "it", False
    try:
        os.setsid()
        process_control.die_with(guard_pid)
        for target, source in enumerate(streams):
            os.dup2(source, target)
        os.closerange(3, failure)
        os.closerange(failure + 1, DESCRIPTOR_MAX)
        reset_signals()
        if spec.cwd:
            place = f"the working directory {os.fsdecode(spec.cwd)!r}"
            os.chdir(spec.cwd)
        place, is_looked_for = repr(os.fsdecode(spec.argv[0])), True
        os.execvpe(spec.argv[0], spec.argv, spec.env)  # noqa: S606 - a shell is the last thing wanted
    except BaseException as error:
        reason = why_not_executed(error, spec if is_looked_for else None)
        text = f"could not be executed: {place}: {reason}"
        with contextlib.suppress(OSError):
            os.write(failure, text.encode(errors="backslashreplace")[:4000])
    os._exit(NEVER_EXECUTED)


def why_not_executed(error: BaseException, spec: ProgramSpec | None) -> str:
    """Return in a few words why a program could not be executed.

    If a folder of PATH may not be entered, `execvpe` reports "permission denied" even if no folder
    has the program. In that case it is missing.

    Args:
        error: Error of the execution.
        spec: The spec, if the program was being looked up; else None.
    """
    if not isinstance(error, OSError):
        return type(error).__name__
    if isinstance(error, PermissionError) and spec is not None:
        name = os.fsdecode(spec.argv[0])
        path = os.fsdecode(spec.env.get(b"PATH", os.fsencode(os.defpath)))
        places = [""] if os.sep in name else path.split(os.pathsep)
        if not any(os.path.lexists(os.path.join(place, name)) for place in places):
            return os.strerror(errno.ENOENT)
    return str(error.strerror)


def reset_signals() -> None:
    """Reset all signal handlers and unblock all signals; ignored ones would stay so across exec."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


# Every byte on the liveness pipe counts as a heartbeat. A frozen server keeps the pipe open and
# sends nothing. The guard treats that like a closed pipe, because the server's lease has expired.


READ_BYTES = 64

# Upper limit of the timeout of poll(), which takes an int of milliseconds.
POLL_MS_MAX = 60_000


class LivenessPipe:
    """The guard's end of the liveness pipe, and how long the server has been silent.

    Silence counts only while the guard runs. If the guard was suspended together with the machine,
    the server gets time for a heartbeat before the program is killed.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.fell_silent = False
        self._silence_seconds_max: float | None = None
        self._running_time = RunningTime(math.inf)
        self._heard = 0.0
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def limit_silence(self, seconds_max: float | None) -> None:
        """Count silence from now on; None for no limit."""
        self._silence_seconds_max = seconds_max
        self._running_time = RunningTime(math.inf if seconds_max is None else seconds_max)
        self._heard = 0.0

    def read_exactly(self, count: int) -> bytes | None:
        """Return `count` bytes, or None if the pipe closes before. Silence is not limited yet."""
        parts = []
        while count:
            part = os.read(self.descriptor, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def wait_for_go(self) -> bool:
        """Wait for the go byte. Return False if the pipe closes or is silent before it.

        A guard that was suspended cannot know the age of a go byte that it finds afterward; the
        server may have given the program up. Therefore it executes the program only after a further
        heartbeat.
        """
        has_go = False
        while True:
            is_readable = bool(self._poller.poll(self.poll_ms()))
            was_suspended = self._running_time.look()
            if is_readable:
                data = self._read()
                if not data:
                    return False
                has_go = has_go or GO in data
                if has_go and not was_suspended:
                    return True
            elif self._is_late():
                self.fell_silent = True
                return False

    def is_lost(self) -> bool:
        """Read without blocking. Return True if the pipe has closed or is silent for too long."""
        self._running_time.look()
        if self._poller.poll(0):
            return not self._read()
        self.fell_silent = self._is_late()
        return self.fell_silent

    def poll_ms(self) -> int | None:
        """Return the timeout for the next poll in milliseconds; None without a limit."""
        if self._silence_seconds_max is None:
            return None
        left = self._heard + self._silence_seconds_max - self._running_time.seconds
        wait_seconds = min(left, self._running_time.look_seconds)
        return max(0, math.ceil(min(wait_seconds * 1000, POLL_MS_MAX)))

    def _read(self) -> bytes:
        self._heard = self._running_time.seconds
        return os.read(self.descriptor, READ_BYTES)

    def _is_late(self) -> bool:
        limit = self._silence_seconds_max
        return limit is not None and self._running_time.seconds - self._heard >= limit


REAP_SECONDS_MAX = 10.0


class ProcessGuard:
    """Guard of one program, from its spec to its end. Owns the descriptors that it is given."""

    def __init__(
        self,
        liveness_pipe: int,
        status: int,
        streams: tuple[int, int, int],
        process_control: ProcessControl,
    ) -> None:
        self._liveness_pipe = LivenessPipe(liveness_pipe)
        self._status = status
        self._streams = streams
        self._process_control = process_control
        self._leader = 0
        self._leader_status: int | None = None
        self._silence_seconds_max: float | None = None
        self._let_go = False
        self._failure = b""
        self._failure_pipe = -1

    def run(self) -> int:
        """Run the guard. Return its exit code; not 0 if some descendants may remain."""
        try:
            return self._run()
        except Exception as error:
            self._report(ERROR, f"the guard process failed: {type(error).__name__}: {error}")
            return 1

    def _run(self) -> int:
        os.setsid()
        self._process_control.adopt_orphans()
        self._process_control.set_name("spawnlog-guard")
        spec = self._receive_spec()
        if spec is None:
            return 0
        self._silence_seconds_max = spec.silence_seconds_max
        self._liveness_pipe.limit_silence(spec.silence_seconds_max)
        self._report(READY, str(os.getpid()))
        if not self._liveness_pipe.wait_for_go():
            silence = self._silence("not executed within")
            self._report(KILLED, silence or "ended by the server before it was executed")
            return 0
        exits = ChildExits()
        self._start(spec)
        del spec
        self._watch(exits)
        return self._finish()

    def _receive_spec(self) -> ProgramSpec | None:
        length = self._liveness_pipe.read_exactly(LENGTH_BYTES)
        if length is None:
            return None
        payload = self._liveness_pipe.read_exactly(int.from_bytes(length, "big"))
        return None if payload is None else decode_spec(payload)

    def _start(self, spec: ProgramSpec) -> None:
        guard_pid = os.getpid()
        self._failure_pipe, failure = os.pipe()
        self._leader = os.fork()
        if self._leader == 0:
            execute_program(spec, self._streams, guard_pid, failure, self._process_control)
        os.close(failure)
        # The pipes must close when the program closes them, so the guard keeps none open.
        for stream in self._streams:
            os.close(stream)

    def _watch(self, exits: ChildExits) -> None:
        """Return when the leader has exited, or the pipe has closed or is silent."""
        poller = select.poll()
        for descriptor in (self._liveness_pipe.descriptor, exits.descriptor, self._failure_pipe):
            poller.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(self._liveness_pipe.poll_ms())]
            if self._failure_pipe in ready and not self._read_failure():
                poller.unregister(self._failure_pipe)
            if self._liveness_pipe.is_lost():
                self._let_go = True
                return
            exits.forget()
            if self._leader_has_ended():
                return

    def _read_failure(self) -> bool:
        """Read the leader's report of a failed exec. Return False at the end of the pipe."""
        part = os.read(self._failure_pipe, 4096)
        self._failure += part
        return bool(part)

    def _leader_has_ended(self) -> bool:
        """Reap adopted orphans and return True if the leader has ended.

        On Linux the leader stays unreaped, so that its process group id cannot be reused before the
        group is killed.
        """
        if sys.platform != "linux":
            with contextlib.suppress(ChildProcessError):
                self._note(*os.waitpid(self._leader, os.WNOHANG))
            return self._leader_status is not None
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return False
            if ended.si_pid == self._leader:
                return True
            os.waitpid(ended.si_pid, 0)

    def _finish(self) -> int:
        with contextlib.suppress(OSError):
            os.killpg(self._leader, signal.SIGKILL)
        left = end_children(REAP_SECONDS_MAX, self._note)
        if not left:
            # All writers are dead, so the pipe has an end. If processes are left, it may not.
            while self._read_failure():
                pass
        self._report(*self._verdict(left))
        return 1 if left else 0

    def _note(self, pid: int, status: int) -> None:
        if pid == self._leader:
            self._leader_status = status

    def _verdict(self, left: list[int]) -> tuple[str, str]:
        if left:
            some = ", ".join(map(str, left[:10]))
            return ERROR, f"{len(left)} of its processes cannot be killed by this user: pid {some}"
        if self._failure:
            return ERROR, self._failure.decode(errors="replace")
        if self._leader_status is None:
            return ERROR, "exit status unknown: another process reaped the program"
        code = os.waitstatus_to_exitcode(self._leader_status)
        if code >= 0:
            return CODE, str(code)
        if self._let_go and code == -signal.SIGKILL:
            return KILLED, self._silence("killed after") or "killed by the server"
        return SIGNAL, str(-code)

    def _silence(self, outcome: str) -> str:
        """Return the report of a kill for silence; empty if silence was not the reason."""
        if not self._liveness_pipe.fell_silent:
            return ""
        return f"{HOLDER_FELL_SILENT}{outcome} {self._silence_seconds_max:g} seconds"

    def _report(self, word: str, text: str) -> None:
        # The server may be gone.
        with contextlib.suppress(OSError):
            os.write(self._status, encode_report(word, text))
