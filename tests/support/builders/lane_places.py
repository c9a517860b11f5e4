"""For spawns that nobody executes: lanes in which no place is ever taken."""

from collections.abc import Sequence
from uuid import UUID

from application.coordination.lane import QueuedChild


class NoPlaces:
    """Implements `LanePlaces`: what is queued waits."""

    async def take(
        self, _run_ids: Sequence[UUID], _lane: str, _depth: int, _: Sequence[QueuedChild] = ()
    ) -> None:
        """None."""
