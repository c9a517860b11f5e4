"""Who puts a session away and who goes on with it, at the same moment."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from application.delivery.archive import Archiver
from application.log.unit_of_work import UnitOfWork
from domain.run.facts import SpawnOptions, TranscriptSeal
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.builders.placed_configurations import PlacedConfigurations
from tests.support.builders.storytelling import plan
from tests.support.servers.running_log import RunningLog

pytestmark = pytest.mark.server


class Overtaken(StoredTranscripts):
    """Somebody acts once the transcript has been put away, and before that is recorded."""

    def __init__(
        self, running: RunningLog, folder: Path, meanwhile: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(running.pool, folder)
        self._meanwhile = meanwhile

    async def archive(self, path: str, stamp: str) -> str:
        renamed = await super().archive(path, stamp)
        assert not Path(path).exists()
        await self._meanwhile()
        return renamed


async def announced(family: LoggedFamily, transcript: Path) -> None:
    transcript.parent.mkdir(parents=True)
    transcript.write_text("{}\n")
    await family.spawn("child", options=SpawnOptions(mode="run"))
    await family.create("child", plan=plan(archive_after_minutes=1))
    await family.tell("child", ask.claim())
    await family.start("child")
    seal = TranscriptSeal(count=1, bytes=3, hmac="00", path=str(transcript))
    await family.end("child", transcript=seal)
    await family.announce("child")


def archiving(running: RunningLog, transcripts: StoredTranscripts, folder: Path) -> Archiver:
    configurations = PlacedConfigurations(folder)
    configurations.read({})
    registry, contents = PostgresRegistry(running.pool), PostgresContents(running.pool)
    work = UnitOfWork(running.log, RandomIdentities(), registry, contents, configurations)
    return Archiver(work, transcripts)


@pytest.mark.parametrize("message", [True, False])
async def test_a_transcript_that_was_put_away_too_soon_is_where_it_was(
    running: RunningLog, tmp_path: Path, message: bool
) -> None:
    family, folder = LoggedFamily(running.log), tmp_path / "transcripts"
    transcript = folder / "main" / "said.jsonl"
    await announced(family, transcript)

    async def meanwhile() -> None:
        if message:
            await send(family, "next", "child")

    transcripts = Overtaken(running, folder, meanwhile)
    run = family.run("child")
    assert run.archive_at is not None
    await archiving(running, transcripts, tmp_path).archive(run.run_id)
    now = await PostgresRegistry(running.pool).run(run.run_id)
    assert now is not None
    assert (now.stage, transcript.exists()) == (
        ("announced", True) if message else ("archived", False)
    )
    assert now.transcript_path is not None
    assert Path(now.transcript_path).read_text() == "{}\n"
