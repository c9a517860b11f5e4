"""Advisory file locks, which the system lets go of however their holder ends."""

import os
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_open_locks: "set[FileLock]" = set()
_watching_forks = False


class FileLock:
    """One opening of a lock file; each opening takes part in the locking by itself.

    The descriptor is closed on exec, and in a forked child at once, so that no child of its
    holder keeps the lock by accident. Not locked when made. Raises OSError when the file cannot
    be opened for writing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _close_in_forked_children()
        _open_locks.add(self)

    def try_exclusive(self) -> bool:
        """Take the lock alone; False when somebody else has it."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take the lock together with others; False when somebody has it alone."""
        return self._try(fcntl.LOCK_SH)

    def wait_exclusive(self) -> None:
        """Take the lock alone, however long that takes."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let go of the lock; the file stays open."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def fileno(self) -> int:
        """The descriptor, to be handed to a child: the lock lasts until all copies are closed."""
        return self._descriptor

    def is_current(self) -> bool:
        """Whether the path still names the file that was opened."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        """Close this opening; a second call does nothing."""
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
