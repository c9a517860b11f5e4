"""What a child said while it ran."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
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
    path: str | None


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a run had said by some moment: the number of its last entry, the bytes of all their
    bodies, and the tokens of the last usage among them; None when no usage was told."""

    entries: int
    bytes: int
    last_usage_tokens: int | None


class Transcripts(Protocol):
    """Keeps transcripts as rows while a run goes on, and as a JSONL file once it is over. What a
    forked child begins with lies in a file of its own until then."""

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries as number `first` and on. False when the claim `epoch` was replaced."""
        ...

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Entries behind number `after`."""
        ...

    async def seal(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, key: bytes, continues: bool = False
    ) -> SealedTranscript:
        """Write the file (complete or not at all) and say what is in it. May be repeated. That of
        a run that `continues` a session is named for the run too."""
        ...

    async def extent(self, run_id: UUID, *, until: datetime) -> Extent:
        """What was written down of a run by `until`."""
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

    async def archive(self, path: str, stamp: str) -> str:
        """Rename a transcript to `<path>.deleted.<stamp>`; gives the new path. May be repeated:
        a transcript that was put away before keeps its name."""
        ...

    async def restore(self, path: str) -> None:
        """Give the transcript at a path that `put_away` gave its name again, if it is there."""
        ...
