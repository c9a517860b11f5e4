"""What a child says is written down under its holder's claim, and sealed when it is over."""

import asyncio
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import orjson
import psycopg
import pytest

from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.transcript_files import TranscriptFileWriter
from application.execution.end import RunFinalizer, UnwrittenOutput
from application.execution.written_extents import WrittenExtents
from application.log.event_log import LogUnavailable
from application.log.unit_of_work import UnitOfWork
from application.ports.hooks import HookClient
from application.ports.registry import Registry
from application.ports.runtimes import EntryKind, RuntimeEnd, TranscriptEntry, message_entry
from application.ports.transcripts import (
    ARCHIVED_MARK,
    SealedTranscript,
    TranscriptFile,
    Transcripts,
    Written,
)
from domain.run.state import Run
from domain.values.refusals import LostClaim
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.log.append.load import LOCK_TRANSCRIPTS
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.transcripts import transcripts as rows_and_files
from tests.support.builders import run_commands as ask
from tests.support.builders.configurations import PlacedConfigurations
from tests.support.builders.logged_family import LoggedFamily
from tests.support.faults.held_commits import held_commits
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

KEY = b"k" * 32


@pytest.fixture
def transcripts(running: ServedLog, tmp_path: Path) -> Transcripts:
    return running.transcripts(tmp_path / "transcripts")


def said(*texts: str, kind: EntryKind = "message") -> list[TranscriptEntry]:
    """One entry for each text."""
    return [TranscriptEntry(kind, {"role": "assistant", "text": text}) for text in texts]


async def written(transcripts: Transcripts, run_id: UUID) -> tuple[Path, SealedTranscript]:
    """The file of a run of the agent `main`, and the seal of its rows."""
    sealed = await transcripts.seal(run_id, key=KEY)
    path = transcripts.file_path(run_id, session_id=run_id, agent_id="main")
    assert await transcripts.write_files([TranscriptFile(run_id, path, sealed.bytes)]) == [None]
    return Path(path), sealed


class WrittenFiles(TranscriptFileWriter):
    """Notes what is to be written, and writes nothing."""

    def __init__(self, registry: Registry, transcripts: Transcripts) -> None:
        super().__init__(registry, transcripts, cast("Any", None))
        self.lines: list[bytes | None] = []

    def add(self, run: Run, lines: bytes | None = None) -> None:
        self.lines.append(lines)


async def texts(transcripts: Transcripts, run_id: UUID, **query: Any) -> list[object]:
    """What is kept of a run."""
    plain = {"after": 0, "limit": 99, **query}
    return [entry.body.get("text") for entry in await transcripts.read(run_id, **plain)]


async def test_entries_are_kept_in_order_and_read_in_pages(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert await transcripts.append(scout, epoch, 1, said("a", "b"))
    assert await transcripts.append(scout, epoch, 3, said("c", kind="tool"))
    assert await transcripts.append(scout, epoch, 4, [])
    assert await texts(transcripts, scout) == ["a", "b", "c"]
    assert await texts(transcripts, scout, after=1, limit=1) == ["b"]
    assert await texts(transcripts, scout, kinds=["tool"]) == ["c"]
    assert await texts(transcripts, scout, kinds=("message", "usage")) == ["a", "b"]
    assert await texts(transcripts, scout, kinds=()) == []
    first = (await transcripts.read(scout, after=0, limit=1))[0]
    assert (first.sequence, first.kind) == (1, "message")
    assert first.body == {"role": "assistant", "text": "a"}
    assert isinstance(first.recorded_at, datetime)


class CountedReads:
    """Transcripts, and from where on their extent was asked for."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self.asked: list[int] = []

    async def written_behind(self, run_id: UUID, *, after: int) -> Written:
        self.asked.append(after)
        return await self._transcripts.written_behind(run_id, after=after)


async def test_how_much_is_written_is_read_on_from_where_it_was_read_last(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    counted = CountedReads(transcripts)
    extents = WrittenExtents(cast("Transcripts", counted))
    assert await extents.of(scout, epoch) == Written(0, 0)
    seen = []
    for first, more in ((1, said("a", "b")), (2, said("b", "c")), (4, said("d"))):
        assert await transcripts.append(scout, epoch, first, more)
        seen.append(await extents.of(scout, epoch))
    assert [one.last for one in seen] == [2, 3, 4]
    assert counted.asked == [0, 0, 2, 3]
    whole = await transcripts.written_behind(scout, after=0)
    assert seen[-1] == whole
    assert whole.bytes == (await transcripts.extent_to(scout, last=9)).bytes
    # With another claim it is looked at anew.
    await extents.of(scout, epoch + 1)
    assert counted.asked[-1] == 0


async def test_a_repeated_write_changes_nothing_and_is_no_lost_claim(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert await transcripts.append(scout, epoch, 1, said("a", "b"))
    assert await transcripts.append(scout, epoch, 1, said("a", "b"))
    assert await transcripts.append(scout, epoch, 2, said("b", "c"))
    assert await texts(transcripts, scout) == ["a", "b", "c"]


async def test_nothing_is_written_outside_of_the_claim(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    async def refused(epoch: int) -> bool:
        return not await transcripts.append(family.id("scout"), epoch, 1, said("late"))

    await family.queue("scout")
    assert await refused(family.run("scout").epoch)
    await family.tell("scout", ask.claim())
    lost = family.run("scout").epoch
    assert await refused(lost), "it has not started yet"
    await family.tell("scout", ask.claim(holder="server-2", lost_epoch=lost))
    with pytest.raises(LostClaim):
        await family.tell("scout", ask.start(lost))
    await family.start("scout")
    held = family.run("scout").epoch
    assert await refused(lost)
    assert await refused(held + 1)
    assert await transcripts.append(family.id("scout"), held, 1, said("in time"))
    await family.end("scout")
    assert not await transcripts.append(family.id("scout"), held, 2, said("late"))
    assert await texts(transcripts, family.id("scout")) == ["in time"]


async def test_a_wish_to_stop_in_the_same_moment_is_no_lost_claim(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    async with held_commits(postgres.url) as commits:
        stopping = asyncio.create_task(family.tell("scout", ask.stop()))
        await commits.held()
        writing = asyncio.create_task(
            transcripts.append(family.id("scout"), family.run("scout").epoch, 1, said("a"))
        )
        await commits.blocks_a_row()
        await commits.release()
        await stopping
        assert await writing
    assert await texts(transcripts, family.id("scout")) == ["a"]


async def test_an_end_in_the_same_moment_is_the_end(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    epoch = family.run("scout").epoch
    async with held_commits(postgres.url) as commits:
        ending = asyncio.create_task(family.end("scout"))
        await commits.held()
        writing = asyncio.create_task(transcripts.append(family.id("scout"), epoch, 1, said("a")))
        await commits.blocks_a_row()
        await commits.release()
        await ending
        assert not await writing
    assert await texts(transcripts, family.id("scout")) == []


class WrittenBehindTheSeal:
    """Transcripts to which the former holder of a run adds an entry after each of the first seals:
    it was frozen, and nobody has fenced it."""

    def __init__(self, transcripts: Transcripts, epoch: int, times: int) -> None:
        self._transcripts = transcripts
        self._epoch = epoch
        self.left = times
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transcripts, name)

    async def seal(self, run_id: UUID, **named: Any) -> SealedTranscript:
        """Seal, and then the other writes."""
        sealed = await self._transcripts.seal(run_id, **named)
        if self.left:
            self.left -= 1
            self.written += 1
            assert await self._transcripts.append(run_id, self._epoch, self.written, said("late"))
        return sealed


INTERRUPTED = RuntimeEnd(outcome="error", reason="interrupted", error="its server is gone")


def finalizer(
    running: ServedLog, transcripts: Any, files: TranscriptFileWriter | None = None
) -> RunFinalizer:
    configurations = PlacedConfigurations(Path("/nowhere"))
    configurations.read({})
    work = UnitOfWork(
        running.log,
        RandomIdentities(),
        running.registry(),
        running.contents(),
        configurations,
    )
    files = files or WrittenFiles(running.registry(), transcripts)
    archiving = Archiver(work, transcripts, files)
    return RunFinalizer(
        work, transcripts, files, Announcer(work, cast("HookClient", None), transcripts), archiving
    )


async def test_an_end_is_not_recorded_with_a_seal_that_does_not_cover_what_is_written(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    behind = WrittenBehindTheSeal(transcripts, family.run("scout").epoch, times=2)
    ended = await finalizer(running, behind).end(family.run("scout"), INTERRUPTED)
    assert ended.transcript is not None
    assert ended.transcript.count == behind.written == 2
    assert await texts(transcripts, family.id("scout")) == ["late", "late"]
    assert (await running.types()).count("RunEnded") == 1


async def test_a_run_whose_transcript_grows_on_and_on_is_ended_later(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    behind = WrittenBehindTheSeal(transcripts, family.run("scout").epoch, times=99)
    end = finalizer(running, behind).end
    with pytest.raises(LogUnavailable, match="grows while it is sealed"):
        await end(family.run("scout"), INTERRUPTED)
    assert "RunEnded" not in await running.types()
    behind.left = 0
    ended = await end(family.run("scout"), INTERRUPTED)
    assert ended.transcript is not None
    assert ended.transcript.count == behind.written


async def test_whoever_reads_the_last_entry_keeps_others_from_writing(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    run = family.run("scout")
    async with held_commits(postgres.url) as commits:
        counting = await open_connection(postgres.url, application="counts")
        async with counting:
            await counting.execute("BEGIN")
            await counting.execute(LOCK_TRANSCRIPTS, [[run.run_id]])
            writing = asyncio.create_task(transcripts.append(run.run_id, run.epoch, 1, said("a")))
            await commits.blocks_a_row()
            await counting.execute("ROLLBACK")
            assert await writing


ODD: dict[str, Mapping[str, object]] = {
    "NUL": {"text": "a\0b"},
    "half a surrogate pair": {"text": "a\ud800b\0", "name": "\udfff"},
    "controls": {"text": "\x01\x1b[31m\u202e\u2028\x7f\r\n"},
    "emoji": {"text": "👩‍👩‍👧 é"},
    "escapes": {"text": "\\u0000 \\ud800 \\x00 '; DROP TABLE runs; --"},
    "long": {"text": "x" * 1_000_000},
    "numbers": {"inputTokens": 2**53, "outputTokens": -1, "cost": 0.1},
    "a huge number": {"inputTokens": 2**70},
    "not a number": {"cost": float("nan")},
    "nested": {"input": {"a": [1, None, {"b": True}]}},
    "foreign": {"path": Path("/x"), "raw": b"\xff"},
    "nothing": {},
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_entries_are_kept_and_sealed(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily, name: str
) -> None:
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert await transcripts.append(scout, epoch, 1, [TranscriptEntry("text", ODD[name])])
    (entry,) = await transcripts.read(scout, after=0, limit=9)
    assert set(entry.body) == set(ODD[name])
    path, sealed = await written(transcripts, scout)
    assert sealed.count == 1
    (line,) = path.read_bytes().splitlines()
    assert orjson.loads(line).items() >= entry.body.items()
    if name in ("NUL", "controls", "emoji", "escapes", "long", "numbers", "nested"):
        assert entry.body == ODD[name]
    if name == "half a surrogate pair":
        assert entry.body == {"text": "a\ufffdb\0", "name": "\ufffd"}


async def test_a_seal_is_the_hash_of_the_file(
    postgres: RunningLog,
    transcripts: Transcripts,
    family: LoggedFamily,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(rows_and_files, "PAGE_ENTRIES", 3)
    await family.begin("scout")
    scout = family.id("scout")
    await transcripts.append(
        scout, family.run("scout").epoch, 1, said(*(f"line {number}" for number in range(10)))
    )
    path, sealed = await written(transcripts, scout)
    assert path == tmp_path / "transcripts" / "main" / f"{scout}.jsonl"
    content = path.read_bytes()
    assert (sealed.count, sealed.bytes) == (10, len(content))
    assert sealed.hmac == hmac.new(KEY, content, hashlib.sha256).hexdigest()
    lines = [orjson.loads(line) for line in content.splitlines()]
    assert [line["sequence"] for line in lines] == list(range(1, 11))
    assert lines[0].keys() == {"sequence", "recordedAt", "kind", "role", "text"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert await written(transcripts, scout) == (path, sealed)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_child_that_said_nothing_has_an_empty_transcript(
    transcripts: Transcripts, family: LoggedFamily, postgres: RunningLog
) -> None:
    await family.begin("scout")
    scout = family.id("scout")
    path, sealed = await written(transcripts, scout)
    assert (sealed.count, sealed.bytes) == (0, 0)
    assert path.read_bytes() == b""


async def test_a_file_that_cannot_be_written_leaves_what_was_there(
    postgres: RunningLog,
    transcripts: Transcripts,
    family: LoggedFamily,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_and_files, "PAGE_ENTRIES", 1)
    await family.begin("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    await transcripts.append(scout, epoch, 1, said("a", "b"))
    path, sealed = await written(transcripts, scout)
    before = path.read_bytes()
    await postgres.ask("UPDATE transcript_entries SET body = '{' WHERE sequence = 2")
    with pytest.raises(orjson.JSONDecodeError):
        await transcripts.write_files([TranscriptFile(scout, str(path), sealed.bytes + 1)])
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_the_file_of_an_archived_run_is_renamed(
    transcripts: Transcripts, family: LoggedFamily, postgres: RunningLog
) -> None:
    await family.begin("scout")
    scout = family.id("scout")
    await transcripts.append(scout, family.run("scout").epoch, 1, said("a"))
    path, sealed = await written(transcripts, scout)
    number = path.stat().st_ino
    archived = TranscriptFile(scout, f"{path}{ARCHIVED_MARK}now", sealed.bytes)
    assert await transcripts.write_files([archived]) == [None]
    assert [(file.name, file.stat().st_ino) for file in path.parent.iterdir()] == [
        (f"{path.name}{ARCHIVED_MARK}now", number)
    ]
    # Another server, which did not know, was slower.
    await written(transcripts, scout)
    assert await transcripts.write_files([archived]) == [None]
    assert [file.stat().st_ino for file in path.parent.iterdir()] == [number]


@pytest.mark.parametrize("archived", ["", f"{ARCHIVED_MARK}now"])
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: os.truncate(path, 3)])
async def test_a_file_that_is_gone_or_cut_short_is_written_again_under_the_name_it_has_now(
    transcripts: Transcripts,
    family: LoggedFamily,
    postgres: RunningLog,
    spoil: Callable[[Path], None],
    archived: str,
) -> None:
    await family.begin("scout")
    scout = family.id("scout")
    await transcripts.append(scout, family.run("scout").epoch, 1, said("a", "b"))
    path, sealed = await written(transcripts, scout)
    content = path.read_bytes()
    spoil(path)
    file = TranscriptFile(scout, f"{path}{archived}", sealed.bytes)
    assert await transcripts.write_files([file]) == [None]
    assert Path(file.path).read_bytes() == content
    # Of a session that is archived nothing stays where it was.
    assert [one.name for one in path.parent.iterdir()] == [Path(file.path).name]


async def begun(transcripts: Transcripts, family: LoggedFamily, message: str) -> Run:
    """A run that executes, and was told this."""
    await family.queue("scout")
    await family.tell("scout", ask.claim())
    await family.start_told("scout", transcripts.unwritten([message_entry(message)]))
    return family.run("scout")


async def test_the_first_entry_is_written_with_the_start(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    (started,) = await running.log.read(limit=1, types=("RunStarted",))
    (first,) = await transcripts.read(run.run_id, after=0, limit=9)
    assert (first.sequence, first.recorded_at) == (1, started.envelope.recorded_at)
    assert first.body == {"role": "user", "text": "look around"}
    assert await transcripts.count_until(run.run_id, first.recorded_at) == 1


async def test_entries_bear_the_moment_at_which_they_arrived(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    now = asyncio.get_running_loop().time()
    entries = [TranscriptEntry("text", {}, arrived_at) for arrived_at in (now - 60, now - 20)]
    assert await transcripts.append(run.run_id, run.epoch, 2, entries)
    first, second = await transcripts.read(run.run_id, after=1, limit=9)
    assert 39.9 < (second.recorded_at - first.recorded_at).total_seconds() < 40.1


async def test_all_entries_but_the_first_may_be_written_with_the_end(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    now = asyncio.get_running_loop().time()
    entries = [
        TranscriptEntry("text", ODD[name], now - 60 + number)
        for number, name in enumerate(sorted(ODD))
    ]
    files = WrittenFiles(running.registry(), transcripts)
    told = transcripts.unwritten((message_entry("look around"),))
    output = UnwrittenOutput(told, entries)
    ended = await finalizer(running, transcripts, files).end(run, INTERRUPTED, output)
    assert ended.ended_at is not None
    rows = await transcripts.read(run.run_id, after=0, limit=99)
    assert [one.sequence for one in rows] == list(range(1, len(ODD) + 2))
    ages = [(ended.ended_at - one.recorded_at).total_seconds() for one in rows[1:]]
    expected = [60 - number for number in range(len(ODD))]
    assert all(0 <= age - at_least < 5 for age, at_least in zip(ages, expected, strict=True))
    key = await running.contents().key(run.session_id)
    assert key is not None
    sealed = await transcripts.seal(run.run_id, key=key)
    assert ended.transcript is not None
    assert (ended.transcript.count, ended.transcript.bytes, ended.transcript.hmac) == (
        sealed.count,
        sealed.bytes,
        sealed.hmac,
    )
    assert [hmac.new(key, lines or b"", hashlib.sha256).hexdigest() for lines in files.lines] == [
        sealed.hmac
    ]


async def test_a_number_is_given_to_one_entry_only(
    postgres: RunningLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.begin("scout")
    await transcripts.append(family.id("scout"), family.run("scout").epoch, 1, said("a"))
    with pytest.raises(psycopg.IntegrityError):
        await postgres.ask("INSERT INTO transcript_entries TABLE transcript_entries")
