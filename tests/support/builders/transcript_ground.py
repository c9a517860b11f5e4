"""Transcripts on a disk with something outside of them that nothing may come near."""

import os
from pathlib import Path

from application.ports.transcripts import ARCHIVED_MARK, TranscriptFile
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders.logged_family import LoggedFamily

KEY = b"k" * 32
STAMP = "2026-03-01T12-00-00-000000Z"


class Ground:
    """Transcripts of one run of the agent `main`, and a folder outside that nothing comes near."""

    def __init__(self, transcripts: StoredTranscripts, folder: Path, family: LoggedFamily) -> None:
        self.transcripts = transcripts
        self.root, self.outside = folder / "data" / "transcripts", folder / "outside"
        self.run_id, self.session_id = family.id("scout"), family.session_id("scout")
        self.names = (
            f"{self.session_id}.jsonl",
            f"{self.session_id}.fork.jsonl",
            f"{self.session_id}.fork.jsonl.{os.getpid()}.part",
            f"{self.session_id}.jsonl.{os.getpid()}.part",
        )
        for place in (self.outside, self.outside / "main"):
            place.mkdir(parents=True)
            for name in self.names:
                (place / name).write_text("of somebody else")

    @property
    def agent(self) -> Path:
        """The agent's folder."""
        return self.root / "main"

    async def write(self, path: str | None = None) -> str:
        """Write the transcript, or see that it is at a path."""
        sealed = await self.transcripts.seal(self.run_id, key=KEY)
        if path is None:
            path = self.transcripts.file_path(
                self.run_id, session_id=self.session_id, agent_id="main"
            )
        file = TranscriptFile(self.run_id, path, sealed.bytes)
        for failure in filter(None, await self.transcripts.write_files([file])):
            raise failure
        return path

    async def begin(self) -> str:
        """Write what the child begins with."""
        return await self.transcripts.write_fork_snapshot(
            self.run_id, session_id=self.session_id, agent_id="main", count=2
        )

    async def drop(self) -> bool:
        """Remove that."""
        return await self.transcripts.drop_fork_snapshot(self.session_id, "main")

    async def archive(self) -> str:
        """Rename the transcript."""
        return await self.write(f"{self.agent / self.names[0]}{ARCHIVED_MARK}{STAMP}")
