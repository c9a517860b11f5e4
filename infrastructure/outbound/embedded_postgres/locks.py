"""Advisory file locks (flock). The system releases them when their process ends, in whatever
way."""

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_open_locks: "set[FileLock]" = set()
_watching_forks = False


class FileLock:
    """One open lock file, not locked initially. Each instance locks independently.

    The descriptor is closed on exec, and at once in a forked child, so that no child keeps the lock
    by accident.

    Raises:
        OSError: The file cannot be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _close_in_forked_children()
        _open_locks.add(self)

    def try_exclusive(self) -> bool:
        """Take the lock exclusively. Return False if another instance holds it."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take the lock as a shared one. Return False if another instance holds it exclusively."""
        return self._try(fcntl.LOCK_SH)

    def wait_exclusive(self) -> None:
        """Take the lock exclusively; block until it is free."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Release the lock; the file stays open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def fileno(self) -> int:
        """Return the descriptor, to pass to a child. The lock lasts until all copies are closed."""
        return self._descriptor

    def is_current(self) -> bool:
        """Return True if the path still names the open file."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self in _open_locks:
            _open_locks.discard(self)
            os.close(self._descriptor)

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _close_in_forked_children() -> None:
    global _watching_forks
    if not _watching_forks:
        _watching_forks = True
        os.register_at_fork(after_in_child=_close_all)


def _close_all() -> None:
    for lock in list(_open_locks):
        lock.close()
