"""For spawns that nobody executes: lanes in which no place is ever taken."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from domain.run.state import Run


class NoPlaces:
    """Implements `LanePlaces`: what is queued waits."""

    def follow_up(self, _run_ids: Sequence[UUID], _lane: str, _depth: int) -> None:
        """No claim."""

    def execute(self, _: Iterable[Run]) -> None:
        """Nothing was claimed."""
