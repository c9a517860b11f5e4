"""Places in lanes, as those see them whose runs are about to be queued."""

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
    """A child as it is about to be queued, with what would else be read from the record: by what it
    is created, and the texts that this refers to. `is_sharing` is whether its family shares
    anything that it will be given."""

    run: Run
    created: SessionCreated
    texts: Mapping[UUID, str]
    text_store: TextStore
    is_sharing: bool


class LaneRoom(Protocol):
    """Room in a lane for runs that are about to be queued in it."""

    @property
    def query(self) -> LaneQuery:
        """Return what has to be known of the lane when they are queued."""
        ...

    def claims(
        self, lane: LaneFacts, now: datetime, runs: Sequence[Run], *, is_as_prepared: bool
    ) -> Sequence[Following]:
        """Claim these runs, as they are queued, while there is room and nobody waits who was there
        first. Those whose start was prepared are started too, if all is as it was then."""
        ...

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of the runs, as they were recorded, that were claimed so."""
        ...


class LanePlaces(Protocol):
    """Finds room in lanes for runs of this process."""

    async def room(
        self, lane: str, depth: int, children: Sequence[QueuedChild] = ()
    ) -> LaneRoom | None:
        """Prepare to take places in a lane, and the start of those children that can be started at
        once. None when this process takes no runs any more."""
        ...
