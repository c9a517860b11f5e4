"""Room in lanes for runs that are about to be queued."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from application.log.event_log import Following, LaneFacts, LaneQuery
from application.log.texts import TextStore
from domain.run.events import SessionCreated
from domain.run.state import Run


@dataclass(frozen=True, slots=True)
class QueuedChild:
    """A child that is about to be queued, with facts that would otherwise be read from the record.

    Attributes:
        created: The event that creates its session.
        texts: The texts that the event refers to, by content id.
        is_sharing: Whether its family shares context that the child will be given.
    """

    run: Run
    created: SessionCreated
    texts: Mapping[UUID, str]
    text_store: TextStore
    is_sharing: bool


class LaneRoom(Protocol):
    """Room in a lane for runs that are about to be queued."""

    @property
    def query(self) -> LaneQuery:
        """Return the query for the lane's state at the time when the runs are queued."""
        ...

    def claims(
        self, lane: LaneFacts, now: datetime, runs: Sequence[Run], *, is_as_prepared: bool
    ) -> Sequence[Following]:
        """Return appends that claim the runs, if slots are free and no other run is ahead in line.

        They also start the runs whose start was prepared, if `is_as_prepared`.
        """
        ...

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of the recorded runs that were claimed."""
        ...


class LanePlaces(Protocol):
    """Finder of room in lanes for runs of this process."""

    async def room(
        self, lane: str, depth: int, children: Sequence[QueuedChild] = ()
    ) -> LaneRoom | None:
        """Prepare claims in a lane, and the start of those children that can start at once.

        Return None if this process takes no more runs.
        """
        ...
