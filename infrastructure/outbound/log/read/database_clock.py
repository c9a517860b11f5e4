"""The clock of the database, as this process knows it."""

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """The time that the database told last, and what has passed since on the monotonic clock.

    Every instant on record is the database's. The clock of the machine may be minutes apart from
    it, so no such instant is ever compared with that one.
    """

    def __init__(self) -> None:
        self._told = datetime.now(UTC)
        self._told_at = time.monotonic()
        self._recorded = datetime.min.replace(tzinfo=UTC)

    def note(self, told: datetime) -> None:
        """Take the time of an answer that has just arrived."""
        self._told, self._told_at = told, time.monotonic()

    def note_recorded(self, instant: datetime) -> None:
        """Take the instant of the newest event that this process knows."""
        self._recorded = instant

    def reckoned(self) -> datetime:
        """Return the time of the database, or a little less: an answer takes its time."""
        return self._told + timedelta(seconds=time.monotonic() - self._told_at)

    def now(self) -> datetime:
        """Return the time of the database. Never less than the instant of an event that this
        process knows: it has passed."""
        return max(self.reckoned(), self._recorded)
