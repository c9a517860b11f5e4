"""Which runs may wait for a slot in their lane, from the events that this process follows."""

from uuid import UUID

WAITING_RUNS_MAX = 10_000


class WaitingRuns:
    """Runs that were queued and not claimed since.

    Runs that were queued before this process followed the log, or for which there is no room here,
    are unknown: until the database was asked and named none, some may wait.
    """

    def __init__(self) -> None:
        self._queued: set[UUID] = set()
        self._unknown = 1
        self._known = 0

    @property
    def may_wait(self) -> bool:
        """Return whether a run may wait."""
        return bool(self._queued) or self._known != self._unknown

    @property
    def unknown(self) -> int:
        """Return how often runs became unknown: read it before the database is asked."""
        return self._unknown

    def note_none(self, unknown: int) -> None:
        """The database was asked when so much was `unknown`, and no run waited."""
        self._known = unknown

    def add(self, run_id: UUID) -> None:
        """Note that a run was queued."""
        if len(self._queued) < WAITING_RUNS_MAX:
            self._queued.add(run_id)
        else:
            self._unknown += 1

    def remove(self, run_id: UUID) -> None:
        """Note that a run was claimed or is over."""
        self._queued.discard(run_id)
