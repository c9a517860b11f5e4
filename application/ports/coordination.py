"""Who works on what. Rows of coordination are never rebuilt and safe to empty."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from application.projections.run_rows import DueKind


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run whose holder is not known to live. `absent` when the holder has no row at all: then
    it may just be that the table was emptied, and the holder will write its row again."""

    run_id: UUID
    stage: str
    holder: str
    epoch: int
    absent: bool


class Coordination(Protocol):
    """Leases on the database's clock."""

    async def renew(self, holder: str, *, url: str | None, lease_seconds: float) -> bool:
        """Prolong a holder's lease, or write it anew when the row is gone. False when it had
        already expired: others may have taken its work, so it must let go of everything."""
        ...

    async def leave(self, holder: str) -> None:
        """Give the lease up, so that others need not wait for it to expire."""
        ...

    async def lost_runs(self, *, limit: int) -> Sequence[LostRun]:
        """Runs held by somebody without a valid lease."""
        ...

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        """Runs that are recorded as held by this holder."""
        ...

    async def claim_due(
        self, kind: DueKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Take due work that nobody has; the claim expires by itself."""
        ...

    async def release(self, kind: DueKind, run_ids: Sequence[UUID]) -> None:
        """Give claims up, done or not."""
        ...

    async def claim_effects(
        self, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Take runs of which something outside has to be undone now, whatever else there is to do
        for them and whoever does it; the claim expires by itself."""
        ...

    async def release_effects(self, run_ids: Sequence[UUID]) -> None:
        """Give such claims up, done or not."""
        ...

    async def next_due_seconds(self, kind: DueKind) -> float | None:
        """Seconds until the next piece of such work is due; None when there is none."""
        ...

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete idempotency records older than that; gives how many."""
        ...
