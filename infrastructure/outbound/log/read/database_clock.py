"""The database's clock, as estimated by this process."""

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """The last time reported by the database, plus the monotonic time elapsed since.

    Every recorded time comes from the database. The machine's clock may differ by minutes, so no
    recorded time is ever compared with it.
    """

    def __init__(self) -> None:
        self._told = datetime.now(UTC)
        self._asked_at = time.monotonic()
        self._recorded = datetime.min.replace(tzinfo=UTC)

    def note(self, reported: datetime, *, asked_at: float) -> None:
        """Update the estimate from an answer that has just arrived.

        The database read its clock at some moment between the request and now. If the current
        estimate lies between these bounds, keep it: it came from a faster answer.

        Args:
            reported: The time that the database reported.
            asked_at: The moment of the request on the monotonic clock, in seconds.
        """
        since = timedelta(seconds=time.monotonic() - asked_at)
        if not reported <= self.reckoned() <= reported + since:
            self._told, self._asked_at = reported, asked_at

    def note_recorded(self, instant: datetime) -> None:
        """Note the time of the newest event that this process knows."""
        self._recorded = instant

    def reckoned(self) -> datetime:
        """Return the estimated time of the database. It may be slightly late, but no stored time is
        later."""
        return self._told + timedelta(seconds=time.monotonic() - self._asked_at)

    def now(self) -> datetime:
        """Return the time of the database, never earlier than the newest event that this process
        knows."""
        return max(self.reckoned(), self._recorded)
