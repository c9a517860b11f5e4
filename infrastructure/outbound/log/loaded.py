"""What a batch is decided from, and what it leaves of idempotency keys."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from application.log.event_log import (
    LaneFacts,
    LaneQuery,
    Reservation,
    Reserved,
    StoredAnswer,
    TreeQuery,
)
from domain.run.state import Run
from domain.session.state import Session

ReservationKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class LoadedFacts:
    """What the first round trip brought, all of it read under the lock. `crowded` are the trees of
    which there is more than was read."""

    position: int
    recorded_at: datetime
    chain_hash: bytes
    now: datetime
    runs: tuple[Run, ...]
    sessions: tuple[Session, ...]
    config_version: int
    reserved: dict[ReservationKey, Reserved]
    lanes: dict[LaneQuery, LaneFacts]
    crowded: frozenset[TreeQuery] = frozenset()


def reservation_key(reservation: Reservation) -> ReservationKey:
    """What makes two requests the same request."""
    return (reservation.token, reservation.method, reservation.path, reservation.key)


@dataclass(slots=True)
class IdempotencyWrites:
    """Records to insert (with their answer, if already known) and answers to fill in, by run."""

    inserts: list[tuple[Reservation, UUID | None, StoredAnswer | None]] = field(
        default_factory=list
    )
    answers: dict[UUID, StoredAnswer] = field(default_factory=dict)
