"""Coordination between processes: leases, claims and due work.

Its rows are never rebuilt, and it is safe to delete them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

ClaimKind = Literal["announce", "archive", "continue", "effects", "wait"]
"""Kinds of work, claimed independently of each other.

`effects` are undos, hooks and webhooks, whatever other work is due for the run. `wait` becomes due
when a run that the run depends on is done.
"""


class ClaimKey(NamedTuple):
    """Identity of a claim."""

    kind: ClaimKind
    run_id: UUID
    holder: str


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run whose holder has no valid lease.

    Attributes:
        absent: The holder has no lease row. The table may have been emptied, in which case the
            holder writes its row again.
        until: When its last lease expired, or expires.
    """

    run_id: UUID
    stage: str
    holder: str
    epoch: int
    absent: bool
    until: datetime | None = None


class LostRuns(NamedTuple):
    """Runs without a valid lease, and the database time of the search."""

    runs: Sequence[LostRun]
    at: datetime


class DueFile(NamedTuple):
    """A transcript file to write, or to rename because its run was archived."""

    run_id: UUID
    is_archived: bool


class DueFiles(Protocol):
    """Transcript files to write.

    The append of an end or an archive creates a row for the file. The process that made the append
    writes it; if it does not in time, another process does.
    """

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        """Return files that were not written in time. Each is returned again after growing
        intervals."""
        ...

    async def files_written(self, files: Sequence[DueFile]) -> Sequence[DueFile]:
        """Mark files as written. Return those whose run was archived meanwhile."""
        ...


class WorkClaims(Protocol):
    """Claims of due work, by the database's clock. They expire by themselves."""

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Claim due work that is not claimed, and return its runs."""
        ...

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        """Renew the claims that no other process has taken, even expired ones, and return them."""
        ...

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Release claims, whether their work is done or not. Claims taken by another process are
        not affected."""
        ...


class Coordination(WorkClaims, DueFiles, Protocol):
    """Leases by the database's clock."""

    async def renew(
        self,
        holder: str,
        *,
        url: str | None,
        lease_seconds: float,
        not_after: datetime | None = None,
    ) -> bool:
        """Renew a holder's lease, capped at `not_after`, or create it if its row is gone.

        An expired lease is renewed unless it was closed.

        Returns:
            False if the lease was closed, so that its holder must let go of everything, or if
                `not_after` is past.
        """
        ...

    async def close_leases(self, holders: Sequence[str]) -> frozenset[str]:
        """Close expired leases for good, before the runs of their holders are taken over.

        After that, `renew` returns False for them.

        Returns:
            The holders whose leases are closed. The others renewed theirs in the meantime.
        """
        ...

    async def leave(self, holder: str) -> None:
        """Give up the lease, so that others need not wait for it to expire."""
        ...

    async def forget(self, holder: str) -> None:
        """Delete the lease of a holder that holds nothing any more."""
        ...

    async def lost_runs(self, *, limit: int) -> LostRuns:
        """Return runs whose holders have no valid lease."""
        ...

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        """Return runs that are recorded as held by this holder."""
        ...

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        """Return those of the first `limit` external runs in line that have waited this long for an
        executor."""
        ...

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete idempotency records older than `days`. Return the number deleted."""
        ...
