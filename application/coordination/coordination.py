"""Who works on what. Rows of coordination are never rebuilt and safe to empty."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

ClaimKind = Literal["announce", "archive", "continue", "effects", "wait"]
"""What is claimed apart from each other. `effects` is what has to be undone or told outside,
whatever else there is to do for a run and whoever does it. `wait` is due as soon as one of those
that a run waits for is done."""


class ClaimKey(NamedTuple):
    """Whose claim of what."""

    kind: ClaimKind
    run_id: UUID
    holder: str


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run whose holder is not known to live. `absent` when the holder has no row at all: then
    it may just be that the table was emptied, and the holder will write its row again. `until` is
    when its last lease expired, or expires."""

    run_id: UUID
    stage: str
    holder: str
    epoch: int
    absent: bool
    until: datetime | None = None


class LostRuns(NamedTuple):
    """Runs without a valid lease, and the time of the database at which they were looked for."""

    runs: Sequence[LostRun]
    at: datetime


class DueFile(NamedTuple):
    """The file of a transcript that is to be written, or to have another name since its run was
    archived."""

    run_id: UUID
    is_archived: bool


class DueFiles(Protocol):
    """Files of transcripts that are to be written. Such a row is made by the append of an end or an
    archive; whoever made that writes the file, and others when it is not done in time."""

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        """Those that nobody has written in time. Each is given out again later and later."""
        ...

    async def files_written(self, files: Sequence[DueFile]) -> Sequence[DueFile]:
        """They are written; gives those whose run was archived since."""
        ...


class WorkClaims(Protocol):
    """Claims of work that is due, on the database's clock. They expire by themselves."""

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Take due work that nobody has."""
        ...

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        """Prolong the claims that nobody else has taken, and return them. An expired claim is
        prolonged too."""
        ...

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Give claims up, done or not. What is somebody else's by now stays that."""
        ...


class Coordination(WorkClaims, DueFiles, Protocol):
    """Leases on the database's clock."""

    async def renew(
        self,
        holder: str,
        *,
        url: str | None,
        lease_seconds: float,
        not_after: datetime | None = None,
    ) -> bool:
        """Prolong a holder's lease, though not beyond `not_after`, or write it anew when the row is
        gone. A lease that expired is prolonged unless it was closed.

        Returns:
            False if the lease was closed, so that its holder must let go of everything, or if
            `not_after` is past.
        """
        ...

    async def close_leases(self, holders: Sequence[str]) -> frozenset[str]:
        """Close expired leases for good, before the runs of their holders are taken over: `renew`
        returns False for them from then on.

        Returns:
            The holders whose leases are closed. The others renewed theirs in the meantime.
        """
        ...

    async def leave(self, holder: str) -> None:
        """Give the lease up, so that others need not wait for it to expire."""
        ...

    async def forget(self, holder: str) -> None:
        """Remove a lease under whose name nothing is held any more."""
        ...

    async def lost_runs(self, *, limit: int) -> LostRuns:
        """Runs held by somebody without a valid lease."""
        ...

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        """Runs that are recorded as held by this holder."""
        ...

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        """Runs that wait for an executor outside for so long, some of them first."""
        ...

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete idempotency records older than that; gives how many."""
        ...
