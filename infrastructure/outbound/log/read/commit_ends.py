"""Cache of transaction-boundary positions, such as a recent head or the last commit before an
instant. Rows as of such a position need no query of the commits."""

from collections import OrderedDict
from datetime import datetime

ENDS_MAX = 1_000


class CommitEnds:
    """The most recently noted boundaries, with their times if known. Another position may be a
    boundary too."""

    def __init__(self) -> None:
        self._ends: OrderedDict[int, datetime | None] = OrderedDict()

    def note(self, position: int, recorded_at: datetime | None = None) -> None:
        """Note that a transaction ends at this position."""
        self._ends[position] = recorded_at or self._ends.get(position)
        self._ends.move_to_end(position)
        if len(self._ends) > ENDS_MAX:
            self._ends.popitem(last=False)

    def __contains__(self, position: int) -> bool:
        """Return True if a transaction is known to end at this position."""
        return position in self._ends

    def recorded_at(self, position: int) -> datetime | None:
        """Return the time when the position was recorded, or None if it is not known here."""
        return self._ends.get(position)
