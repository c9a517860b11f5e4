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
    when its last lease expired, or expires; `overdue_seconds` how long ago that was when it was
    looked for."""

    run_id: UUID
    stage: str
    holder: str
    epoch: int
    absent: bool
    until: datetime | None = None
    overdue_seconds: float = 0


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
        """Prolong those that are not over yet; gives these. The others may be somebody else's."""
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
        revives: bool = False,
    ) -> bool:
        """Prolong a holder's lease, though not beyond `not_after`, or write it anew when the row is
        gone. False when it had already expired: others may have taken its work, so it must let go
        of everything. With `revives` it is had back then, and False says that it is over already,
        by `not_after`."""
        ...

    async def leave(self, holder: str) -> None:
        """Give the lease up, so that others need not wait for it to expire."""
        ...

    async def forget(self, holder: str) -> None:
        """Remove a lease under whose name nothing is held any more."""
        ...

    async def lost_runs(self, *, limit: int) -> Sequence[LostRun]:
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
