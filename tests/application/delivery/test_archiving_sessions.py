"""A session that is archived and continued at the same moment."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from application.delivery.archive import Archiver
from application.delivery.transcript_files import TranscriptFileWriter
from domain.run.facts import SpawnOptions, TranscriptSeal
from domain.run.state import Run
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.builders.storytelling import plan
from tests.support.memory.served_log import work_on
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server
SECONDS_MAX = 30.0


class OvertakenRegistry(PostgresRegistry):
    """Registry in which another process acts between a read of the run and its event."""

    def __init__(self, running: RunningLog, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(running.pool)
        self._meanwhile = meanwhile

    async def run(self, run_id: UUID, **query: Any) -> Run | None:
        found = await super().run(run_id, **query)
        await self._meanwhile()
        return found


async def announced(family: LoggedFamily, transcript: Path) -> None:
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    transcript.chmod(0o600)
    await family.spawn("child", options=SpawnOptions(mode="run"))
    await family.create("child", plan=plan(archive_after_minutes=1))
    await family.execute("child")
    seal = TranscriptSeal(count=1, bytes=3, hmac="00", path=str(transcript))
    await family.end("child", transcript=seal)
    await family.announce("child")


@pytest.mark.parametrize("message", [True, False])
async def test_transcript_file_has_its_recorded_name(
    running: RunningLog, tmp_path: Path, message: bool
) -> None:
    family, folder = LoggedFamily(running.log), tmp_path / "transcripts"
    transcript = folder / "main" / "said.jsonl"
    await announced(family, transcript)

    async def meanwhile() -> None:
        if message:
            await send(family, "next", "child")

    registry, transcripts = PostgresRegistry(running.pool), StoredTranscripts(running.pool, folder)
    overtaken = OvertakenRegistry(running, meanwhile)
    work = work_on(running, registry=overtaken)
    files = TranscriptFileWriter(registry, transcripts, PostgresCoordination(running.pool))
    run_id = family.run("child").run_id
    await Archiver(work, transcripts, files).archive(run_id)
    await files.finish(SECONDS_MAX)
    now = await registry.run(run_id)
    assert now is not None
    assert (now.stage, transcript.exists()) == (
        ("announced", True) if message else ("archived", False)
    )
    assert now.transcript_path is not None
    assert Path(now.transcript_path).read_text() == "{}\n"
    assert len(list(transcript.parent.iterdir())) == 1
