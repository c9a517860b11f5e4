"""The log file of the server, which never grows beyond twice its limit."""

import contextlib
import os
import threading
from collections import deque
from pathlib import Path
from typing import IO

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
