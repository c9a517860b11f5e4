"""For spawns that nobody executes: lanes in which no place is ever taken."""

from collections.abc import Sequence

from application.coordination.lane import QueuedChild


class NoPlaces:
    """Implements `LanePlaces`: what is queued waits."""

    async def take(self, _: Sequence[QueuedChild]) -> None:
        """None."""
