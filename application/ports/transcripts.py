"""Transcripts: the entries of runs as rows, and their files, which are written after the end."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.runtimes import TranscriptEntry


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """A stored entry. `sequence` counts from 1 within the run."""

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, object]


@dataclass(frozen=True, slots=True)
class SealedTranscript:
    """Seal over all entries of a run.

    Attributes:
        count: Number of entries.
        last: Number of the last entry, 0 if there is none.
        bytes: Size of their JSON lines.
        hmac: Keyed hash of those lines.
    """

    count: int
    last: int
    bytes: int
    hmac: str


ARCHIVED_MARK = ".deleted."
"""Separates the name of an archived transcript file from the archive time that is appended to
it."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """The transcript file of an ended run.

    Attributes:
        path: The recorded path.
        size_bytes: The sealed size.
        lines: The content, if it is known without reading the rows.
    """

    run_id: UUID
    path: str
    size_bytes: int
    lines: bytes | None = field(default=None, repr=False)


class UnwrittenEntries(Protocol):
    """Entries to be written by an append, in the form of their rows."""

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kind of each entry."""
        ...

    @property
    def bodies(self) -> Sequence[str]:
        """Return the row text of each entry."""
        ...

    def instants(self, recorded_at: datetime) -> Sequence[datetime]:
        """Return when each entry arrived, if the append is recorded at `recorded_at`."""
        ...

    def lines(self, first: int, recorded_at: datetime) -> bytes:
        """Return the lines of the file if the first entry has number `first`."""
        ...


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of a transcript at one moment.

    Attributes:
        entries: Number of the last entry.
        bytes: Size of all bodies up to it.
        last_usage_tokens: Tokens of the last usage entry; None if there was none.
    """

    entries: int
    bytes: int
    last_usage_tokens: int | None


class Written(NamedTuple):
    """Number of the last entry, and the bytes of the bodies that were measured up to it."""

    last: int
    bytes: int


class EntryFlushes(Protocol):
    """Flush functions of the entry buffers in this process, by run."""

    def add(self, key: UUID, flush: Callable[[], Awaitable[None]]) -> None:
        """Register a function to call before the run's entries are read."""
        ...

    def remove(self, key: UUID) -> None:
        """Unregister the run, whose buffer is empty for good."""
        ...

    async def flush(self, key: UUID) -> None:
        """Write the buffered entries of a run; no-op if there are none."""
        ...


class Transcripts(Protocol):
    """Store of transcripts: rows, which are authoritative, and JSONL files written from them.

    The entries that a forked child begins with have a separate file until its run is over.
    """

    @property
    def flushes(self) -> EntryFlushes:
        """Flush functions for entries that this process has not written yet. Every read flushes its
        run first."""
        ...

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries from number `first` on, with their arrival times.

        Return False if the claim `epoch` was replaced.
        """
        ...

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Return entries after number `after`."""
        ...

    async def read_last(
        self, run_id: UUID, *, until: int | None, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Return the last entries in order, up to number `until` if it is given."""
        ...

    async def last_entries(self, run_ids: Collection[UUID]) -> Mapping[UUID, int]:
        """Return the number of the last written entry of each run that has any."""
        ...

    async def read_on(
        self,
        afters: Mapping[UUID, int],
        *,
        limit: int,
        kinds: Sequence[str],
        until: datetime | None = None,
    ) -> Mapping[UUID, Sequence[RecordedEntry]]:
        """Return the written entries of several runs, each after its number, at most `limit` per
        run, and only those recorded by `until` if it is given."""
        ...

    async def grown(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Wait for an entry after number `after`, written by any server. Return False on
        timeout."""
        ...

    async def count_until(self, run_id: UUID, instant: datetime) -> int:
        """Return how many of the first entries were written by an instant."""
        ...

    def unwritten(self, entries: Sequence[TranscriptEntry]) -> UnwrittenEntries:
        """Prepare entries that an append of the log writes at the start or the end of a run."""
        ...

    async def seal(self, run_id: UUID, *, key: bytes) -> SealedTranscript:
        """Return the seal over the rows of a run."""
        ...

    def file_path(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, continues: bool = False
    ) -> str:
        """Return the path for the file of a run. If the run `continues` a session, its id is in the
        name."""
        ...

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        """Make sure that each file is complete at its path: rename it, write it from the rows, or
        leave it.

        Idempotent.

        Args:
            files: The files.
            are_left: Whether a process may have died while writing them, so that its temporary
                files are removed.

        Returns:
            For each file, the error that prevented it, or None.
        """
        ...

    async def last_recorded_at(self, run_id: UUID) -> datetime | None:
        """Return when the last entry of a run was written; None if it has none."""
        ...

    async def extent(self, run_id: UUID, *, until: datetime) -> Extent:
        """Return the extent of a run's transcript at an instant."""
        ...

    async def extent_to(self, run_id: UUID, *, last: int) -> Extent:
        """Return the extent up to entry number `last`, or of all entries if there are fewer."""
        ...

    async def written_after(self, run_id: UUID, *, after: int) -> Written:
        """Return the last entry number and the bytes of the bodies after number `after`.

        The cost does not depend on the number of earlier entries.
        """
        ...

    async def fork(self, run_id: UUID, epoch: int, entries: Sequence[TranscriptEntry]) -> bool:
        """Write the entries that a child begins with, from number 1 on, replacing an earlier
        attempt.

        Return False if the claim `epoch` was replaced or the run is past its preparation.
        """
        ...

    async def drop_fork(self, run_id: UUID) -> bool:
        """Delete the entries of a refused run. Return True if there were any."""
        ...

    def fork_snapshot_place(self, session_id: UUID, agent_id: str) -> tuple[str, str]:
        """Return the place of the fork snapshot: a folder, and the path below it."""
        ...

    async def write_fork_snapshot(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, count: int
    ) -> str:
        """Write the file of the first `count` entries unless it exists, and return its path.

        Raises:
            OSError: If it cannot be written.
        """
        ...

    async def drop_fork_snapshot(self, session_id: UUID, agent_id: str) -> bool:
        """Delete the fork snapshot. Return True if it existed.

        Raises:
            OSError: If it cannot be deleted.
        """
        ...
