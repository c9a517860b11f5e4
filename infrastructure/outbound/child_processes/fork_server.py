"""Fork server: forks a guard for each request, so that a start does not start an interpreter.

Run as `python -I -S fork_server.py` with a stream socket as stdin. A request is one byte, the
number of descriptors that come with it: liveness pipe, status, stdout, stderr, and stdin unless it
is /dev/null. The fork server keeps none of them. It has a single thread. It knows no program,
because the guards read the specs.

It reaps the guards. If a guard dies unexpectedly, it kills the processes that the guard left. It
exits after the socket has closed and its guards are gone. That is soon: the server that held the
socket also held the liveness pipes.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time

if __name__ == "__main__":
    # -I and -S leave only the standard library on the path.
    sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])

from infrastructure.outbound.child_processes.guard_process import ProcessGuard
from infrastructure.outbound.child_processes.protocol import ERROR, encode_report
from infrastructure.outbound.child_processes.reaper import (
    ChildExits,
    ProcessControl,
    end_children,
    reap,
)

REQUEST_DESCRIPTORS_MAX = 5
READY_BYTE = b"R"
FORK_SERVER_REAP_SECONDS_MAX = 0.2
REAP_AGAIN_MS = 5000
LAST_GUARDS_SECONDS_MAX = 15.0


class ForkServer:
    """Server of one control socket, until the socket closes."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._process_control = ProcessControl()
        self._process_control.adopt_orphans()
        self._process_control.set_name("spawnlog-fork")
        self._exits = ChildExits()
        self._guards: set[int] = set()
        self._left_behind = False

    def serve(self) -> None:
        """Serve requests. Returns in the fork server only; in a forked guard the process exits."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._exits.descriptor, select.POLLIN)
        self._control.send(READY_BYTE)
        while True:
            ready = [fd for fd, _ in poller.poll(REAP_AGAIN_MS if self._left_behind else None)]
            self._reap_guards()
            if self._control.fileno() in ready and not self._answer():
                break
        poller.unregister(self._control)
        self._control.close()
        self._wait_for_guards(poller)

    def _reap_guards(self) -> None:
        self._exits.forget()
        reap(self._note)
        if self._left_behind:
            self._left_behind = bool(
                end_children(FORK_SERVER_REAP_SECONDS_MAX, self._note, self._guards)
            )

    def _note(self, pid: int, status: int) -> None:
        """Record the end of a child. A guard that failed leaves its descendants to this process."""
        if pid not in self._guards or status != 0:
            self._left_behind = True
        self._guards.discard(pid)

    def _answer(self) -> bool:
        """Serve one request. Return False if the socket has closed."""
        flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
        try:
            word, descriptors, _, _ = socket.recv_fds(
                self._control, 1, REQUEST_DESCRIPTORS_MAX, flags
            )
        except ConnectionError:
            return False
        if not word:
            return False
        try:
            # If the descriptor table is full, fewer arrive; the server then gets no guard.
            if len(descriptors) == word[0]:
                self._fork_guard(descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _fork_guard(self, descriptors: list[int]) -> None:
        status = descriptors[1]
        try:
            pid = os.fork()
        except OSError as error:
            text = f"could not fork the guard process: {error.strerror}"
            with contextlib.suppress(OSError):
                os.write(status, encode_report(ERROR, text))
            return
        if pid:
            self._guards.add(pid)
            return
        code = 1
        try:
            self._control.close()
            self._exits.close()
            code = self._run_guard(descriptors).run()
        finally:
            os._exit(code)

    def _run_guard(self, descriptors: list[int]) -> ProcessGuard:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        liveness_pipe, status, stdout, stderr, *rest = descriptors
        stdin = rest[0] if rest else os.open(os.devnull, os.O_RDONLY)
        return ProcessGuard(liveness_pipe, status, (stdin, stdout, stderr), self._process_control)

    def _wait_for_guards(self, poller: select.poll) -> None:
        deadline = time.monotonic() + LAST_GUARDS_SECONDS_MAX
        while self._guards and time.monotonic() < deadline:
            poller.poll(100)
            self._reap_guards()
        if self._guards or self._left_behind:
            end_children(FORK_SERVER_REAP_SECONDS_MAX * 5, self._note)


def main() -> None:
    """Take the control socket from stdin and replace the standard streams by /dev/null."""
    # A service manager signals the whole group, but only the server decides when programs end.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    control = socket.socket(fileno=os.dup(0))
    fork_server = ForkServer(control)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    gc.freeze()
    gc.disable()
    fork_server.serve()


if __name__ == "__main__":
    main()
