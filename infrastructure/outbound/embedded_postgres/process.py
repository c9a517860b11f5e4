"""Programs that end when the supervisor ends, run as the account of the server, and its log
file."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

from infrastructure.outbound.embedded_postgres.account import Account, cannot_switch

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.01
_INHERITED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH")


def server_environment() -> dict[str, str]:
    """The little of our environment that a server needs; none of the caller's secrets."""
    inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return {"PATH": os.defpath, **inherited, "LC_ALL": "C"}


def start_program(
    command: list[str], account: Account, descriptors: tuple[int, ...], on_orphaned: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start a program as `account`; its whole output is one pipe.

    Call it from the main thread: the system sends `on_orphaned` when the thread that started the
    program ends. Where there is no such signal (macOS) a killed supervisor leaves its server
    running.
    """
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=server_environment(),
            pass_fds=descriptors,
            user=account.uid if account.switch else None,
            group=account.gid if account.switch else None,
            extra_groups=[] if account.switch else None,
            umask=0o077,
            # Two system calls, prepared before the fork: nothing that another thread could hold.
            preexec_fn=_ends_with_parent(on_orphaned),  # noqa: PLW1509
        )
    except OSError as error:
        if account.switch and error.filename == "/":
            raise cannot_switch(account, error) from error
        raise


def adopt_orphans() -> None:
    """Make this process the parent of processes whose parent ends, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(grace_seconds: float) -> None:
    """Wait for the processes of a server whose main process is gone; kill them after the grace.

    They hold the shared memory of the dead server, and no new one starts beside them.
    """
    deadline = time.monotonic() + grace_seconds
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            continue
        if time.monotonic() > deadline:
            for child in _children():
                os.kill(child, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    state, parent = file.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if parent == own and state != "Z":
                found.append(int(entry))
    return found


def _ends_with_parent(on_orphaned: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, int(on_orphaned), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return in_child


_LOG_BYTES_MAX = 1_000_000
_LINE_BYTES_MAX = 8_192
_LINES_REMEMBERED = 60


class BoundedLog:
    """Appends what programs write to `path`; the part before the limit is kept as `path`.1."""

    def __init__(self, path: Path, bytes_max: int = _LOG_BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._lock = threading.Lock()

    def follow(self, stream: IO[bytes]) -> "FollowedOutput":
        """Append the lines of `stream` until it ends, in a thread of its own."""
        return FollowedOutput(self, stream)

    def write(self, line: bytes) -> None:
        """Append one line. A log that cannot be written must not stop the server."""
        with self._lock, contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line)
                full = os.fstat(descriptor).st_size >= self._bytes_max
            finally:
                os.close(descriptor)
            if full:
                self._path.replace(self._path.with_name(self._path.name + ".1"))


class FollowedOutput:
    """The output of one program on its way into the log."""

    def __init__(self, log: BoundedLog, stream: IO[bytes]) -> None:
        self._log = log
        self._stream = stream
        self._last: deque[bytes] = deque(maxlen=_LINES_REMEMBERED)
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def output(self, timeout_seconds: float = 1.0) -> str:
        """The last lines; waits for the end of the output, but no longer than the timeout."""
        self._thread.join(timeout_seconds)
        return b"".join(list(self._last)).decode("utf-8", "replace")

    def _copy(self) -> None:
        with self._stream:
            while line := self._stream.readline(_LINE_BYTES_MAX):
                self._last.append(line)
                self._log.write(line)
