"""Child processes that run under the server's account and end with the supervisor, and the log."""

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
    """Return the few variables that a server needs, without secrets of the caller."""
    inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return {"PATH": os.defpath, **inherited, "LC_ALL": "C"}


def start_program(
    command: list[str], account: Account, descriptors: tuple[int, ...], on_orphaned: signal.Signals
) -> subprocess.Popen[bytes]:
    """Start a program as `account`, with stdout and stderr in one pipe.

    Call this from the main thread: the system sends `on_orphaned` when the thread that started the
    program ends. macOS has no such signal; there a killed supervisor leaves its server running.

    Args:
        command: Command and arguments.
        account: Account to run as.
        descriptors: Descriptors that the program inherits.
        on_orphaned: Signal that the program gets when this process dies.

    Raises:
        EmbeddedPostgresError: This root may not become the account.
        OSError: The program cannot be started.
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
            # Safe between fork and exec: only two system calls, and no lock of another thread.
            preexec_fn=_ends_with_parent(on_orphaned),  # noqa: PLW1509
        )
    except OSError as error:
        if account.switch and error.filename == "/":
            raise cannot_switch(account, error) from error
        raise


def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(grace_seconds: float) -> None:
    """Wait for the remaining processes of a dead server; kill them after the grace period.

    They hold its shared memory, so no new server can start beside them.
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
    """Log file with one rotation: when it is full, `path` becomes `path`.1."""

    def __init__(self, path: Path, bytes_max: int = _LOG_BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._lock = threading.Lock()

    def follow(self, stream: IO[bytes]) -> "FollowedOutput":
        """Append the lines of `stream` in a thread, until it ends."""
        return FollowedOutput(self, stream)

    def write(self, line: bytes) -> None:
        """Append one line. Errors are ignored: an unwritable log must not stop the server."""
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
    """Output of one program, on its way into the log."""

    def __init__(self, log: BoundedLog, stream: IO[bytes]) -> None:
        self._log = log
        self._stream = stream
        self._last: deque[bytes] = deque(maxlen=_LINES_REMEMBERED)
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def output(self, timeout_seconds: float = 1.0) -> str:
        """Return the last lines, after waiting up to the timeout for the end of the output."""
        self._thread.join(timeout_seconds)
        return b"".join(list(self._last)).decode("utf-8", "replace")

    def _copy(self) -> None:
        with self._stream:
            while line := self._stream.readline(_LINE_BYTES_MAX):
                self._last.append(line)
                self._log.write(line)
