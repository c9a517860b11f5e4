"""Transcript files: an unreadable one does not delay others, and a stopping server waits for those
in progress, within its time.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from application.coordination.coordination import DueFile
from application.delivery import transcript_files
from application.delivery.transcript_files import TranscriptFileWriter
from application.ports.transcripts import TranscriptFile
from domain.run.facts import TranscriptSeal
from domain.run.state import Run
from tests.support.builders import run_histories as past
from tests.support.builders.storytelling import run_id, run_of

SECONDS_MAX = 30.0


class SlowDisk:
    """Transcripts and their coordination on a disk that blocks."""

    def __init__(self) -> None:
        self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.written: list[UUID] = []
        self.is_deaf = False

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        self.begun.set()
        waiting = asyncio.ensure_future(self.may_go_on.wait())
        while not waiting.done():
            try:
                await asyncio.wait({waiting})
            except asyncio.CancelledError:
                if not self.is_deaf:
                    waiting.cancel()
                    raise
        self.written += [file.run_id for file in files]
        return [None] * len(files)

    async def files_written(self, _: Sequence[DueFile]) -> Sequence[DueFile]:
        return ()

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        return ()


def ended_run(number: int = 1) -> Run:
    path = f"/data/transcripts/main/{number}.jsonl"
    seal = TranscriptSeal(count=0, bytes=0, hmac="00", path=path)
    run = run_of(*past.a_started_run(), past.ended(transcript=seal))
    return run.changed({"run_id": run_id(number)})


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def files(disk: SlowDisk) -> TranscriptFileWriter:
    either = cast("Any", disk)
    return TranscriptFileWriter(either, either, either)


async def test_write_under_way_is_waited_for(disk: SlowDisk, files: TranscriptFileWriter) -> None:
    files.start()
    files.add(ended_run(), b"")
    await disk.begun.wait()
    finishing = asyncio.create_task(files.finish(SECONDS_MAX))
    await asyncio.wait({finishing}, timeout=0.05)
    assert not finishing.done()
    disk.may_go_on.set()
    await finishing
    await files.close()
    assert disk.written == [ended_run().run_id]


async def test_stuck_write_is_not_waited_for(
    disk: SlowDisk, files: TranscriptFileWriter, caplog: pytest.LogCaptureFixture
) -> None:
    disk.is_deaf = True
    files.add(ended_run(), b"")
    await asyncio.wait_for(files.finish(0.01), SECONDS_MAX)
    assert disk.written == []
    assert "written later" in caplog.text
    disk.may_go_on.set()


class LeftFiles(SlowDisk):
    """Unwritten files of three runs, the second of which cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.left = [DueFile(run_id(number), is_archived=False) for number in (1, 2, 3)]
        self.were_asked_for = asyncio.Event()

    async def run(self, run_id: UUID) -> Run:
        return ended_run(run_id.int % 2**32)

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        for file in files:
            if file.run_id == run_id(2):
                raise ValueError("that is no JSON")
            self.written.append(file.run_id)
        return [None] * len(files)

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        left, self.left = self.left, []
        if not left:
            self.were_asked_for.set()
        return left


async def test_unreadable_transcript_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transcript_files, "PENDING_SECONDS", 0.01)
    disk = cast("Any", LeftFiles())
    files = TranscriptFileWriter(disk, disk, disk)
    files.start()
    await asyncio.wait_for(disk.were_asked_for.wait(), SECONDS_MAX)
    await files.close()
    assert disk.written == [run_id(1), run_id(3)]
    assert f"the transcript of run {run_id(2)} cannot be read" in caplog.text
