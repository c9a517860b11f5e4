"""Places in lanes, as those see them whose runs are about to be queued."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from application.log.event_log import Submission
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


@dataclass(frozen=True, slots=True)
class QueuedRuns:
    """Runs that are about to be queued in one lane; `children` says what is known of them."""

    run_ids: Sequence[UUID]
    lane: str
    depth: int
    children: Sequence[QueuedChild] = ()


class TakenPlaces(Protocol):
    """Places for runs, to be taken in the transaction that queues them."""

    @property
    def follow_ups(self) -> Sequence[Submission[Any]]:
        """The claim of these runs, while there is room and nobody waits who was there first; and
        the start of those children that can be started at once."""
        ...

    def execute(self, runs: Iterable[Run]) -> None:
        """Execute those of them that were claimed so; `runs` are as they were recorded."""
        ...


class LanePlaces(Protocol):
    """Takes places in lanes for this process."""

    async def take(self, queued: QueuedRuns) -> TakenPlaces | None:
        """Places for these; None when this process takes no runs any more."""
        ...
