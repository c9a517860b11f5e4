"""For spawns that nobody executes: lanes in which no place is ever taken."""

from application.coordination.lane import QueuedRuns


class NoPlaces:
    """Implements `LanePlaces`: what is queued waits."""

    async def take(self, _: QueuedRuns) -> None:
        """None."""
