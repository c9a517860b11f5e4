"""What a child said while it ran, as rows; and the file of it, which is written behind the end."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.runtimes import TranscriptEntry


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """An entry as it is kept: `sequence` counts from 1 within the run."""

    sequence: int
    recorded_at: datetime
    kind: str
    body: dict[str, object]


@dataclass(frozen=True, slots=True)
class SealedTranscript:
    """All entries of a run: how many, the number of the last one (0 when there is none), the bytes
    of their JSON lines, and the keyed hash."""

    count: int
    last: int
    bytes: int
    hmac: str


ARCHIVED_MARK = ".deleted."
"""What stands between the name of a transcript's file and the moment that its run was to be
archived, in the name that the file has from then on."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """The file of the transcript of an ended run: the path on record, how many bytes were sealed,
    and the lines, where they are known without the rows."""

    run_id: UUID
    path: str
    size_bytes: int
    lines: bytes | None = field(default=None, repr=False)


class UnwrittenEntries(Protocol):
    """Entries to be written by an append, as their rows will have them."""

    @property
    def kinds(self) -> Sequence[str]:
        """Of each."""
        ...

    @property
    def bodies(self) -> Sequence[str]:
        """Of each, the text of its row."""
        ...

    def instants(self, recorded_at: datetime) -> Sequence[datetime]:
        """When each came, if the append is recorded at that moment."""
        ...

    def lines(self, first: int, recorded_at: datetime) -> bytes:
        """Return the lines of the file if these are the entries from number `first` on."""
        ...


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a run had said by some moment: the number of its last entry, the bytes of all their
    bodies, and the tokens of the last usage among them; None when no usage was told."""

    entries: int
    bytes: int
    last_usage_tokens: int | None


class Written(NamedTuple):
    """The number of the last entry, and the bytes of the bodies of some up to it."""

    last: int
    bytes: int


class EntryFlushes(Protocol):
    """How to write the entries that this process keeps back, by run."""

    def add(self, key: UUID, flush: Callable[[], Awaitable[None]]) -> None:
        """From now on flush this before a read."""
        ...

    def remove(self, key: UUID) -> None:
        """Nothing is kept back any more."""
        ...

    async def flush(self, key: UUID) -> None:
        """Write what is kept back of a run; no-op when nothing is."""
        ...


class Transcripts(Protocol):
    """Keeps transcripts as rows, which are the truth, and as JSONL files, which are written from
    them. What a forked child begins with lies in a file of its own until its run is over."""

    @property
    def flushes(self) -> EntryFlushes:
        """How to write what this process knows of a run and has not written yet. Every read of a
        run's entries does that first."""
        ...

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries as number `first` and on, each at the moment at which it arrived. False
        when the claim `epoch` was replaced."""
        ...

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Entries behind number `after`."""
        ...

    async def read_last(
        self, run_id: UUID, *, until: int | None, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """The last entries, in their order; of those up to number `until`, if that is given."""
        ...

    async def last_entries(self, run_ids: Collection[UUID]) -> Mapping[UUID, int]:
        """Return the number of the last written entry of each run that has any."""
        ...

    async def read_on(
        self, afters: Mapping[UUID, int], *, limit: int, kinds: Sequence[str]
    ) -> Mapping[UUID, Sequence[RecordedEntry]]:
        """Return the written entries of several runs, of each those behind a number, at most
        `limit` of each."""
        ...

    async def grown(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Wait for an entry behind number `after`, whichever server writes it. Returns False when
        the time is over."""
        ...

    async def count_until(self, run_id: UUID, instant: datetime) -> int:
        """The number of the last entry of a run that was written down by an instant, with none in
        front of it that was not; 0 for none."""
        ...

    def unwritten(self, entries: Sequence[TranscriptEntry]) -> UnwrittenEntries:
        """Entries that an append of the log writes: the start, or the end."""
        ...

    async def seal(self, run_id: UUID, *, key: bytes) -> SealedTranscript:
        """What is in the rows of a run."""
        ...

    def file_path(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, continues: bool = False
    ) -> str:
        """Where the file of a run is to be. That of a run that `continues` a session is named for
        the run too."""
        ...

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        """See to it that each file is at its path, whole: it is renamed, written from the rows, or
        there already. May be repeated. For each that cannot be there, why. With `are_left` a
        process that died may have been at them, and what it left of attempts goes."""
        ...

    async def last_recorded_at(self, run_id: UUID) -> datetime | None:
        """When the last entry of a run was written down; None when it has none."""
        ...

    async def extent(self, run_id: UUID, *, until: datetime) -> Extent:
        """What was written down of a run by `until`."""
        ...

    async def extent_to(self, run_id: UUID, *, last: int) -> Extent:
        """What was written down of a run up to entry number `last`; of fewer, when it has fewer."""
        ...

    async def written_behind(self, run_id: UUID, *, after: int) -> Written:
        """The last entry, and the bytes of those behind number `after`. What it costs does not grow
        with how many stand in front."""
        ...

    async def fork(self, run_id: UUID, epoch: int, entries: Sequence[TranscriptEntry]) -> bool:
        """Write what a child begins with, as number 1 and on, in place of what was written of it
        before. False when the claim `epoch` was replaced or the run is past its preparation."""
        ...

    async def drop_fork(self, run_id: UUID) -> bool:
        """Remove the entries of a run that was refused; whether there were any."""
        ...

    def fork_snapshot_place(self, session_id: UUID, agent_id: str) -> tuple[str, str]:
        """Where the file of what a child begins with is: a folder, and the path below it."""
        ...

    async def write_fork_snapshot(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, count: int
    ) -> str:
        """Write the file of the first `count` entries, unless it is there; gives its path. Raises
        OSError."""
        ...

    async def drop_fork_snapshot(self, session_id: UUID, agent_id: str) -> bool:
        """Remove that file; whether it was there. Raises OSError."""
        ...
