"""For spawns that nobody executes: lanes in which there is never room."""

from collections.abc import Sequence

from application.coordination.lane import QueuedChild


class NoPlaces:
    """Implements `LanePlaces`: what is queued waits."""

    async def room(self, lane: str, depth: int, children: Sequence[QueuedChild] = ()) -> None:
        """None."""
