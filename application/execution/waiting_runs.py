"""Runs that may wait for a slot in their lane, according to the events seen by this process."""

from uuid import UUID

WAITING_RUNS_MAX = 10_000


class WaitingRuns:
    """Queued runs that were not claimed yet.

    Runs that were queued before this process followed the log, or beyond the limit, are unknown:
    some may be waiting until a query of the database finds none.
    """

    def __init__(self) -> None:
        self._queued: set[UUID] = set()
        self._unknown = 1
        self._known = 0

    @property
    def may_wait(self) -> bool:
        """Return True if a run may be waiting."""
        return bool(self._queued) or self._known != self._unknown

    @property
    def unknown(self) -> int:
        """Return how often runs became unknown. Read it before querying the database."""
        return self._unknown

    def note_none(self, unknown: int) -> None:
        """Note that a query found no waiting run. `unknown` is the value read before the query."""
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
