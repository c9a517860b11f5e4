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
    """All entries of a run: how many, the bytes of their JSON lines, and the keyed hash."""

    count: int
    bytes: int
    hmac: str
    path: str | None


class Transcripts(Protocol):
    """Keeps transcripts as rows while a run goes on, and as a JSONL file once it is over."""

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
        self, run_id: UUID, *, session_id: UUID, agent_id: str, key: bytes
    ) -> SealedTranscript:
        """Write the file (complete or not at all) and say what is in it. May be repeated."""
        ...

    async def put_away(self, path: str, stamp: str) -> str:
        """Rename a transcript to `<path>.deleted.<stamp>`; gives the new path. May be repeated:
        a transcript that was put away before keeps its name."""
        ...
