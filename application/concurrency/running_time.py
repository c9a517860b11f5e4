"""A clock that stops while the machine or process is suspended, for timeouts."""

import time

LOOKS_PER_LIMIT = 6
GAPS_PER_LIMIT = 3


class RunningTime:
    """A clock for one timeout of `limit_seconds`, such as a lease.

    A suspended process (a closed lid, SIGSTOP) sees a large gap when it resumes, far longer than it
    meant to wait. A gap of a third of the limit or more therefore counts as one regular wait. Call
    `look` every `look_seconds`: a longer gap counts as a suspension.
    """

    def __init__(self, limit_seconds: float) -> None:
        self.look_seconds = limit_seconds / LOOKS_PER_LIMIT
        self._gap_seconds_min = limit_seconds / GAPS_PER_LIMIT
        self._looked_at = time.monotonic()
        self.seconds = 0.0

    def look(self) -> bool:
        """Add the time since the last look. Return True if the process was suspended meanwhile."""
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        was_suspended = passed >= self._gap_seconds_min
        self.seconds += min(passed, self.look_seconds) if was_suspended else passed
        return was_suspended

    def now(self) -> float:
        """Return the seconds counted so far, up to now."""
        self.look()
        return self.seconds
