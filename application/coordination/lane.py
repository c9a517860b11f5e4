"""Places in lanes, as those see them whose runs are about to be queued."""

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from application.log.event_log import Submission
from domain.run.state import Run


class LanePlaces(Protocol):
    """Takes places in lanes for this process."""

    def follow_up(self, run_ids: Sequence[UUID], lane: str, depth: int) -> Submission[None] | None:
        """The claim of runs that the submission before it queues, while there is room and nobody
        waits who was there first; None when this process takes no runs any more."""
        ...

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of them that were claimed so."""
        ...
