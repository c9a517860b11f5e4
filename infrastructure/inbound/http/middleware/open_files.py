"""Limit of open files, and the share of it that connections may use.

Connections, pipes of children and database connections are all open files. The system gives a new
file the lowest free number, so a high number means that the table is nearly full.
"""

import logging
import resource
import time
from dataclasses import dataclass, field

FILES_RESERVED = 64
"""Files kept free for children, the database, and requests about health and control."""
FILES_LAST = 8
"""Number of the reserved files that no connection gets at all."""
UNLIMITED_FILES = 1_000_000
LOG_PAUSE_SECONDS = 60.0
_log = logging.getLogger("spawnlog.http")


@dataclass(slots=True)
class OpenFiles:
    """The limit of open files of this process, and the share of connections."""

    files_max: int
    _logged_at: float = field(default=float("-inf"), init=False)

    @classmethod
    def of_process(cls) -> "OpenFiles":
        """Return the current limit of this process (`ulimit -n`)."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(UNLIMITED_FILES if soft == resource.RLIM_INFINITY else soft)

    @property
    def reserved(self) -> int:
        """Return the number of files kept free of ordinary connections."""
        return min(FILES_RESERVED, self.files_max // 4)

    @property
    def streams_max(self) -> int:
        """Return the maximum number of simultaneous event streams."""
        return self.files_max // 2

    def is_reserved(self, number: int) -> bool:
        """Return True if a connection with this file number uses a reserved file.

        Logs a warning, at most once in `LOG_PAUSE_SECONDS`.
        """
        if number < self.files_max - self.reserved:
            return False
        now = time.monotonic()
        if now - self._logged_at >= LOG_PAUSE_SECONDS:
            self._logged_at = now
            _log.warning(
                "nearly all file descriptors are in use (ulimit -n is %d): new connections are"
                " refused, except requests about health and stops; close idle connections, or"
                " start the server with a higher limit",
                self.files_max,
            )
        return True

    def is_last(self, number: int) -> bool:
        """Return True if this file may not be used even for a refusal."""
        return number >= self.files_max - min(FILES_LAST, self.reserved // 2)
