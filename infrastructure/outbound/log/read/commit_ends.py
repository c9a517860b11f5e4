"""Positions that are known to be the last ones of their transactions: the head of a moment ago, and
where the commit before an instant ended. Rows as of one of these need no look at the commits."""

from collections import OrderedDict
from datetime import datetime

ENDS_MAX = 1_000


class CommitEnds:
    """Those that were noted last, and when they were recorded, where that was told too. What it
    does not know may be an end all the same."""

    def __init__(self) -> None:
        self._ends: OrderedDict[int, datetime | None] = OrderedDict()

    def note(self, position: int, recorded_at: datetime | None = None) -> None:
        """A transaction ends there."""
        self._ends[position] = recorded_at or self._ends.get(position)
        self._ends.move_to_end(position)
        if len(self._ends) > ENDS_MAX:
            self._ends.popitem(last=False)

    def __contains__(self, position: int) -> bool:
        """Whether a transaction is known to end there."""
        return position in self._ends

    def recorded_at(self, position: int) -> datetime | None:
        """When that was recorded; None when it is not known here."""
        return self._ends.get(position)
