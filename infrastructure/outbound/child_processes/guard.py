"""The gate: a small process between a holder and one program.

It executes the program after the go byte. When the lifeline ends (the holder died, or let go) or
falls silent (the holder is frozen, or has lost its lease), or the program's leader exits, it kills
every descendant, reports how the leader ended and exits.

Linux: descendants that double-fork or start a session of their own come back to the gate, which
is their subreaper, and a gate killed with SIGKILL takes the leader with it. macOS has neither: the
gate kills the leader's process group, and a descendant that left that group survives.
"""

import contextlib
import os
import select
import signal
import sys

from infrastructure.outbound.child_processes.protocol import (
    CODE,
    ERROR,
    KILLED,
    LENGTH_BYTES,
    READY,
    SIGNAL,
    Spec,
    decode_spec,
    encode_report,
)
from infrastructure.outbound.child_processes.reaper import end_children
from infrastructure.outbound.processes.child_exits import ChildExits
from infrastructure.outbound.processes.exit_words import HOLDER_FELL_SILENT
from infrastructure.outbound.processes.leader import execute_program
from infrastructure.outbound.processes.lifeline import LivenessPipe
from infrastructure.outbound.processes.parenthood import ProcessControl

REAP_SECONDS_MAX = 10.0


class ProcessGuard:
    """One program, from its spec to its end. Owns the descriptors it is given."""

    def __init__(
        self, lifeline: int, status: int, streams: tuple[int, int, int], parenthood: ProcessControl
    ) -> None:
        self._lifeline = LivenessPipe(lifeline)
        self._status = status
        self._streams = streams
        self._parenthood = parenthood
        self._leader = 0
        self._leader_status: int | None = None
        self._let_go = False
        self._failure = b""
        self._failure_pipe = -1

    def run(self) -> int:
        """The gate's whole life; returns its exit code, not 0 when something may be left below."""
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
        self._lifeline.silence_seconds_max = spec.silence_seconds_max
        self._report(READY, str(os.getpid()))
        if not self._lifeline.wait_for_go():
            silence = self._silence("not executed within")
            self._report(KILLED, silence or "ended by its holder before it was executed")
            return 0
        exits = ChildExits()
        self._start(spec)
        del spec
        self._watch(exits)
        return self._finish()

    def _receive_spec(self) -> Spec | None:
        length = self._lifeline.read_exactly(LENGTH_BYTES)
        if length is None:
            return None
        payload = self._lifeline.read_exactly(int.from_bytes(length, "big"))
        return None if payload is None else decode_spec(payload)

    def _start(self, spec: Spec) -> None:
        gate = os.getpid()
        self._failure_pipe, failure = os.pipe()
        self._leader = os.fork()
        if self._leader == 0:
            execute_program(spec, self._streams, gate, failure, self._parenthood)
        os.close(failure)
        # A program's pipe must end when the program lets go of it, so the gate holds none.
        for stream in self._streams:
            os.close(stream)

    def _watch(self, exits: ChildExits) -> None:
        """Returns when the leader has exited, or the holder has let go or fallen silent."""
        poller = select.poll()
        for descriptor in (self._lifeline.descriptor, exits.descriptor, self._failure_pipe):
            poller.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(self._lifeline.poll_ms())]
            if self._failure_pipe in ready and not self._read_failure():
                poller.unregister(self._failure_pipe)
            if self._lifeline.is_lost():
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
        if not self._lifeline.fell_silent:
            return ""
        return f"{HOLDER_FELL_SILENT}{outcome} {self._lifeline.silence_seconds_max:g} seconds"

    def _report(self, word: str, text: str) -> None:
        # Nobody may be left to read it.
        with contextlib.suppress(OSError):
            os.write(self._status, encode_report(word, text))
