"""The guard: a small process between a holder and one program.

It executes the program after the go byte. When the liveness pipe ends (the holder died, or let go)
or falls silent (the holder is frozen, or has lost its lease), or the program's leader exits, it
kills every descendant, reports how the leader ended and exits.

Linux: descendants that double-fork or start a session of their own come back to the guard, which
is their subreaper, and a guard killed with SIGKILL takes the leader with it. macOS has neither: the
guard kills the leader's process group, and a descendant that left that group survives.
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
    Spec,
    decode_spec,
    encode_report,
)
from infrastructure.outbound.child_processes.reaper import ChildExits, ProcessControl, end_children

# Everything the guard opened is close-on-exec; this closes it a second way.
DESCRIPTOR_MAX = 256
NEVER_EXECUTED = 127


def execute_program(
    spec: Spec,
    streams: tuple[int, int, int],
    guard_pid: int,
    failure: int,
    parenthood: ProcessControl,
) -> NoReturn:
    """Executes the program, or writes one line to `failure` that says why it could not be."""
    place, is_looked_for = "it", False
    try:
        os.setsid()
        parenthood.die_with(guard_pid)
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


def why_not_executed(error: BaseException, spec: Spec | None) -> str:
    """Return in a few words why a program could not be executed; `spec` if it was looked for.

    If a folder of PATH may not be entered, `execvpe` says that permission is denied, also if no
    folder has the program: then it is missing.
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
    """Default dispositions, nothing blocked: what was ignored would stay so across exec."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


# The guard's end of the pipe from its holder.
#
# Every byte is a sign of life. A holder that is frozen keeps the pipe open and says nothing; the
# guard treats it like one that closed the pipe, because its lease has expired.


READ_BYTES = 64

# No wait is longer, whatever the limit: the number must fit what poll() takes.
POLL_MS_MAX = 60_000


class LivenessPipe:
    """Signs of life of the holder, and how long there was none.

    Silence counts only while the guard runs: when the guard was suspended with the whole machine,
    the holder gets the time to speak again before the program is killed.
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
        """Count silence from now on. None is no limit."""
        self._silence_seconds_max = seconds_max
        self._running_time = RunningTime(math.inf if seconds_max is None else seconds_max)
        self._heard = 0.0

    def read_exactly(self, count: int) -> bytes | None:
        """Return None when the pipe ends before. Knows no silence: nothing was executed yet."""
        parts = []
        while count:
            part = os.read(self.descriptor, min(count, 1 << 20))
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def wait_for_go(self) -> bool:
        """Return False if the pipe ended or fell silent before the go.

        A guard that was suspended cannot tell how old a go is that it finds then, and the program
        may have been given up: it executes the program only after a further sign of life.
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
        """Read without waiting. Return True if the pipe has ended or fallen silent."""
        self._running_time.look()
        if self._poller.poll(0):
            return not self._read()
        self.fell_silent = self._is_late()
        return self.fell_silent

    def poll_ms(self) -> int | None:
        """Return how long a wait for the next byte may be; None without a limit."""
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
    """One program, from its spec to its end. Owns the descriptors it is given."""

    def __init__(
        self,
        liveness_pipe: int,
        status: int,
        streams: tuple[int, int, int],
        parenthood: ProcessControl,
    ) -> None:
        self._liveness_pipe = LivenessPipe(liveness_pipe)
        self._status = status
        self._streams = streams
        self._parenthood = parenthood
        self._leader = 0
        self._leader_status: int | None = None
        self._silence_seconds_max: float | None = None
        self._let_go = False
        self._failure = b""
        self._failure_pipe = -1

    def run(self) -> int:
        """The guard's whole life; returns its exit code, not 0 when something may be left below."""
        try:
            return self._run()
        except Exception as error:
            self._report(ERROR, f"the gate of the program failed: {type(error).__name__}: {error}")
            return 1

    def _run(self) -> int:
        os.setsid()
        self._parenthood.adopt_orphans()
        self._parenthood.set_name("spawnlog-gate")
        spec = self._receive_spec()
        if spec is None:
            return 0
        self._silence_seconds_max = spec.silence_seconds_max
        self._liveness_pipe.limit_silence(spec.silence_seconds_max)
        self._report(READY, str(os.getpid()))
        if not self._liveness_pipe.wait_for_go():
            silence = self._silence("not executed within")
            self._report(KILLED, silence or "ended by its holder before it was executed")
            return 0
        exits = ChildExits()
        self._start(spec)
        del spec
        self._watch(exits)
        return self._finish()

    def _receive_spec(self) -> Spec | None:
        length = self._liveness_pipe.read_exactly(LENGTH_BYTES)
        if length is None:
            return None
        payload = self._liveness_pipe.read_exactly(int.from_bytes(length, "big"))
        return None if payload is None else decode_spec(payload)

    def _start(self, spec: Spec) -> None:
        guard_pid = os.getpid()
        self._failure_pipe, failure = os.pipe()
        self._leader = os.fork()
        if self._leader == 0:
            execute_program(spec, self._streams, guard_pid, failure, self._parenthood)
        os.close(failure)
        # A program's pipe must end when the program lets go of it, so the guard holds none.
        for stream in self._streams:
            os.close(stream)

    def _watch(self, exits: ChildExits) -> None:
        """Returns when the leader has exited, or the holder has let go or fallen silent."""
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
        """Takes in what the leader says of a failed exec; false at the end of the pipe."""
        part = os.read(self._failure_pipe, 4096)
        self._failure += part
        return bool(part)

    def _leader_has_ended(self) -> bool:
        """Reaps adopted orphans. On Linux the leader stays unreaped, which keeps its group's
        number from being used again before the group is killed."""
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
            # With everybody gone the pipe has an end; otherwise nobody who is left has it.
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
            return ERROR, "how the program ended is not known: somebody else reaped it"
        code = os.waitstatus_to_exitcode(self._leader_status)
        if code >= 0:
            return CODE, str(code)
        if self._let_go and code == -signal.SIGKILL:
            return KILLED, self._silence("killed after") or "killed by its holder"
        return SIGNAL, str(-code)

    def _silence(self, outcome: str) -> str:
        """Empty when it was not for silence."""
        if not self._liveness_pipe.fell_silent:
            return ""
        return f"{HOLDER_FELL_SILENT}{outcome} {self._silence_seconds_max:g} seconds"

    def _report(self, word: str, text: str) -> None:
        # Nobody may be left to read it.
        with contextlib.suppress(OSError):
            os.write(self._status, encode_report(word, text))
