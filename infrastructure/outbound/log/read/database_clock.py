"""The clock of the database, as this process knows it."""

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """The time that the database told, and what has passed since on the monotonic clock.

    Every instant on record is the database's. The clock of the machine may be minutes apart from
    it, so no such instant is ever compared with that one.
    """

    def __init__(self) -> None:
        self._told = datetime.now(UTC)
        self._asked_at = time.monotonic()
        self._recorded = datetime.min.replace(tzinfo=UTC)

    def note(self, told: datetime, *, asked_at: float) -> None:
        """Take the time of an answer that has just arrived.

        The database told it at some moment since the question. The earlier answer is kept if it
        is between these bounds: it came quicker.

        Args:
            told: The time of the database.
            asked_at: The moment of the question on the monotonic clock, in seconds.
        """
        since = timedelta(seconds=time.monotonic() - asked_at)
        if not told <= self.reckoned() <= told + since:
            self._told, self._asked_at = told, asked_at

    def note_recorded(self, instant: datetime) -> None:
        """Take the instant of the newest event that this process knows."""
        self._recorded = instant

    def reckoned(self) -> datetime:
        """Return the time of the database, or a little more: nothing that is stored is later."""
        return self._told + timedelta(seconds=time.monotonic() - self._asked_at)

    def now(self) -> datetime:
        """Return the time of the database. Never less than the instant of an event that this
        process knows: it has passed."""
        return max(self.reckoned(), self._recorded)
