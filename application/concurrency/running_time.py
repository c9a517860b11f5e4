"""Seconds in which this process ran, for timeouts that a suspended machine must not use up."""

import time

LOOKS_PER_LIMIT = 6
GAPS_PER_LIMIT = 3


class RunningTime:
    """A clock for one timeout of `limit_seconds`, such as a lease.

    A suspended process (a closed lid, SIGSTOP) notices nothing until it runs again: then far more
    time has passed since its last look than it meant to wait. A gap of a third of the limit or more
    therefore counts as one wait. Look every `look_seconds`: unnoticed time counts as suspended.
    """

    def __init__(self, limit_seconds: float) -> None:
        self.look_seconds = limit_seconds / LOOKS_PER_LIMIT
        self._gap_seconds_min = limit_seconds / GAPS_PER_LIMIT
        self._looked_at = time.monotonic()
        self.seconds = 0.0

    def look(self) -> bool:
        """Count the time since the last look. Return True if the process was suspended in it."""
        now = time.monotonic()
        passed, self._looked_at = now - self._looked_at, now
        was_suspended = passed >= self._gap_seconds_min
        self.seconds += min(passed, self.look_seconds) if was_suspended else passed
        return was_suspended

    def now(self) -> float:
        """Look, and return the seconds that count so far."""
        self.look()
        return self.seconds
