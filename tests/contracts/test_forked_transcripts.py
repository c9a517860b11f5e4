"""What a forked child begins with is written under the claim of its preparation, and goes again."""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

import orjson
import pytest

from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import TranscriptFile, Transcripts
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.faults.held_commits import held_commits
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

KEY = b"k" * 32


@pytest.fixture
def transcripts(running: ServedLog, tmp_path: Path) -> Transcripts:
    return running.transcripts(tmp_path / "transcripts")


def said(*texts: str) -> list[TranscriptEntry]:
    return [TranscriptEntry("message", {"role": "user", "text": text}) for text in texts]


async def texts(transcripts: Transcripts, run_id: UUID) -> list[tuple[int, object]]:
    rows = await transcripts.read(run_id, after=0, limit=99)
    return [(entry.sequence, entry.body.get("text")) for entry in rows]


async def test_a_repeated_fork_takes_the_place_of_the_one_before(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert await transcripts.fork(scout, epoch, said("a", "b", "c"))
    assert await transcripts.fork(scout, epoch, said("A", "B"))
    assert await texts(transcripts, scout) == [(1, "A"), (2, "B")]
    assert await transcripts.fork(scout, epoch, [])
    assert await texts(transcripts, scout) == []


async def test_nothing_is_forked_outside_of_the_claim(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    scout, lost = family.id("scout"), family.run("scout").epoch
    assert await transcripts.fork(scout, lost, said("a"))
    await family.tell("scout", ask.resume(lost_epoch=lost))
    held = family.run("scout").epoch
    assert held != lost
    assert not await transcripts.fork(scout, lost, said("late"))
    assert await texts(transcripts, scout) == [(1, "a")], "what the other wrote stays for now"
    assert await transcripts.fork(scout, held, said("b"))
    assert await texts(transcripts, scout) == [(1, "b")]


async def test_nothing_is_forked_into_a_child_that_is_there(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.queue("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert not await transcripts.fork(scout, epoch, said("late"))
    await family.tell("scout", ask.claim())
    await family.start("scout")
    assert not await transcripts.fork(scout, family.run("scout").epoch, said("late"))
    assert await texts(transcripts, scout) == []


async def test_a_refusal_in_the_same_moment_keeps_a_fork_out(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    async with held_commits(postgres.url) as commits:
        refusing = asyncio.create_task(family.tell("scout", ask.refuse(epoch)))
        await commits.held()
        forking = asyncio.create_task(transcripts.fork(scout, epoch, said("a")))
        await commits.blocks_a_row()
        await commits.release()
        await refusing
        assert not await forking
    assert await texts(transcripts, scout) == []


async def test_only_what_was_refused_is_unforked(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.furnish("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    await transcripts.fork(scout, epoch, said("a"))
    assert not await transcripts.drop_fork(scout)
    assert await texts(transcripts, scout) == [(1, "a")]
    await family.tell("scout", ask.refuse(epoch))
    assert await transcripts.drop_fork(scout)
    assert not await transcripts.drop_fork(scout)
    assert await texts(transcripts, scout) == []


async def test_an_extent_ends_before_the_first_entry_that_came_too_late(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    entries: Sequence[TranscriptEntry] = [
        TranscriptEntry("usage", {"inputTokens": 5, "outputTokens": 2}),
        TranscriptEntry("text", {"text": "å"}),
        TranscriptEntry("usage", {"inputTokens": 50, "outputTokens": 20}),
        TranscriptEntry("text", {"text": "late"}),
    ]
    await transcripts.append(scout, epoch, 1, entries)
    noon = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
    for sequence, minutes in ((1, 0), (2, 1), (3, 5), (4, 2)):
        await postgres.ask(
            "UPDATE transcript_entries SET recorded_at = %s WHERE run_id = %s AND sequence = %s",
            noon + timedelta(minutes=minutes),
            scout,
            sequence,
        )

    async def extent(minutes: int) -> tuple[int, int, int | None]:
        found = await transcripts.extent(scout, until=noon + timedelta(minutes=minutes))
        return found.entries, found.bytes, found.last_usage_tokens

    sizes = [len(orjson.dumps(one.body)) for one in entries]
    assert await extent(-1) == (0, 0, None)
    assert await extent(0) == (1, sizes[0], 7)
    assert await extent(2) == (2, sum(sizes[:2]), 7), "the fourth is behind one that is later"
    assert await extent(5) == (4, sum(sizes), 70)


async def test_the_file_of_a_beginning_is_private_whole_and_of_the_first_entries(
    transcripts: Transcripts, family: LoggedFamily, tmp_path: Path, postgres: RunningLog
) -> None:
    await family.furnish("scout")
    scout, session = family.id("scout"), family.session_id("scout")
    await transcripts.fork(scout, family.run("scout").epoch, said("a", "b", "c"))
    path = Path(
        await transcripts.write_fork_snapshot(scout, session_id=session, agent_id="main", count=2)
    )
    assert path == tmp_path / "transcripts" / "main" / f"{session}.fork.jsonl"
    assert path == Path(*transcripts.fork_snapshot_place(session, "main"))
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [(line["sequence"], line["kind"], line["text"]) for line in lines] == [
        (1, "message", "a"),
        (2, "message", "b"),
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    before = path.stat()
    await transcripts.write_fork_snapshot(scout, session_id=session, agent_id="main", count=2)
    assert path.stat().st_mtime_ns == before.st_mtime_ns, "it was there"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(
    transcripts: Transcripts, family: LoggedFamily, tmp_path: Path, postgres: RunningLog
) -> None:
    await family.furnish("scout")
    scout, session = family.id("scout"), family.session_id("scout")
    await transcripts.fork(scout, family.run("scout").epoch, said("a"))
    path = Path(*transcripts.fork_snapshot_place(session, "main"))
    path.parent.mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path.symlink_to(precious)
    path.with_name(f"{path.name}.{os.getpid()}.part").symlink_to(precious)
    await transcripts.write_fork_snapshot(scout, session_id=session, agent_id="main", count=1)
    assert precious.read_text() == "mine"
    assert not path.is_symlink()
    assert path.read_bytes().count(b"\n") == 1


async def test_a_beginning_goes_with_what_was_left_of_an_attempt_to_write_it(
    transcripts: Transcripts, family: LoggedFamily, postgres: RunningLog
) -> None:
    await family.furnish("scout")
    scout, session = family.id("scout"), family.session_id("scout")
    assert not await transcripts.drop_fork_snapshot(session, "main")
    await transcripts.fork(scout, family.run("scout").epoch, said("a"))
    place = {"session_id": session, "agent_id": "main"}
    path = Path(await transcripts.write_fork_snapshot(scout, count=1, **place))  # type: ignore[arg-type]
    path.with_name(f"{path.name}.1.part").write_text("half")
    (path.parent / f"{session}.jsonl").write_text("sealed")
    assert await transcripts.drop_fork_snapshot(session, "main")
    assert not await transcripts.drop_fork_snapshot(session, "main")
    assert [file.name for file in path.parent.iterdir()] == [f"{session}.jsonl"]


async def test_a_seal_covers_what_a_child_began_with(
    transcripts: Transcripts, family: LoggedFamily, postgres: RunningLog
) -> None:
    await family.furnish("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    await transcripts.fork(scout, epoch, said("a", "b"))
    await family.tell("scout", ask.take_step(epoch))
    await family.create("scout")
    await family.tell("scout", ask.claim())
    await family.start("scout")
    assert await transcripts.append(scout, family.run("scout").epoch, 3, said("c"))
    sealed = await transcripts.seal(scout, key=KEY)
    path = transcripts.file_path(scout, session_id=scout, agent_id="main")
    assert await transcripts.write_files([TranscriptFile(scout, path, sealed.bytes)]) == [None]
    lines = Path(path).read_bytes().splitlines()
    assert [orjson.loads(line)["text"] for line in lines] == ["a", "b", "c"]
    assert sealed.count == 3
