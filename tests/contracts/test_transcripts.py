"""Output and beginning of a child are stored under its holder's claim, and sealed at its end."""

import asyncio
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
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
from application.log.event_log import LogUnavailableError
from application.ports.hooks import HookClient
from application.ports.registry import Registry
from application.ports.runtimes import EntryKind, RuntimeEnd, TranscriptEntry, message_entry
from application.ports.transcripts import (
    ARCHIVED_MARK,
    RecordedEntry,
    SealedTranscript,
    TranscriptFile,
    Transcripts,
    Written,
)
from domain.run.state import Run
from domain.values.refusals import LostClaim
from infrastructure.outbound.log.append.load import LOCK_TRANSCRIPTS
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.transcripts import transcripts as rows_and_files
from tests.support.builders import run_commands as ask
from tests.support.builders.logged_family import LoggedFamily
from tests.support.faults.held_commits import held_commits
from tests.support.memory.served_log import ServedLog, work_on
from tests.support.servers.running_log import RunningLog

KEY = b"k" * 32


@pytest.fixture
def transcripts(running: ServedLog, tmp_path: Path) -> Transcripts:
    return running.transcripts(tmp_path / "transcripts")


def said(*texts: str, kind: EntryKind = "message") -> list[TranscriptEntry]:
    return [TranscriptEntry(kind, {"role": "assistant", "text": text}) for text in texts]


class WrittenFiles(TranscriptFileWriter):
    """Writer that notes the due files and writes none."""

    def __init__(self, registry: Registry, transcripts: Transcripts) -> None:
        super().__init__(registry, transcripts, cast("Any", None))
        self.lines: list[bytes | None] = []

    def add(self, run: Run, lines: bytes | None = None) -> None:
        self.lines.append(lines)


class Scout:
    """A run that holds its claim, and its output."""

    def __init__(self, transcripts: Transcripts, run: Run) -> None:
        self._transcripts = transcripts
        self.run_id, self.epoch, self.session_id = run.run_id, run.epoch, run.session_id

    async def append(self, first: int, entries: Sequence[TranscriptEntry]) -> bool:
        return await self._transcripts.append(self.run_id, self.epoch, first, entries)

    async def fork(self, entries: Sequence[TranscriptEntry]) -> bool:
        return await self._transcripts.fork(self.run_id, self.epoch, entries)

    async def read(self, **query: Any) -> Sequence[RecordedEntry]:
        return await self._transcripts.read(self.run_id, **{"after": 0, "limit": 99, **query})

    async def texts(self, **query: Any) -> list[object]:
        return [entry.body.get("text") for entry in await self.read(**query)]

    async def numbered(self) -> list[tuple[int, object]]:
        return [(entry.sequence, entry.body.get("text")) for entry in await self.read()]

    async def written(self) -> tuple[Path, SealedTranscript]:
        """Return the file of the agent `main`, and the seal of its rows."""
        sealed = await self._transcripts.seal(self.run_id, key=KEY)
        path = self._transcripts.file_path(self.run_id, session_id=self.run_id, agent_id="main")
        file = TranscriptFile(self.run_id, path, sealed.bytes)
        assert await self._transcripts.write_files([file]) == [None]
        return Path(path), sealed

    async def snapshot(self, count: int) -> str:
        """Write the first entries as the beginning of a child's transcript."""
        return await self._transcripts.write_fork_snapshot(
            self.run_id, session_id=self.session_id, agent_id="main", count=count
        )


@pytest.fixture
async def scout(transcripts: Transcripts, family: LoggedFamily) -> Scout:
    await family.begin("scout")
    return Scout(transcripts, family.run("scout"))


@pytest.fixture
async def furnished(transcripts: Transcripts, family: LoggedFamily) -> Scout:
    await family.furnish("scout")
    return Scout(transcripts, family.run("scout"))


async def test_entries_are_read_in_pages(scout: Scout) -> None:
    assert await scout.append(1, said("a", "b"))
    assert await scout.append(3, said("c", kind="tool"))
    assert await scout.append(4, [])
    assert await scout.texts() == ["a", "b", "c"]
    assert await scout.texts(after=1, limit=1) == ["b"]
    assert await scout.texts(kinds=["tool"]) == ["c"]
    assert await scout.texts(kinds=("message", "usage")) == ["a", "b"]
    assert await scout.texts(kinds=()) == []
    first = (await scout.read(after=0, limit=1))[0]
    assert (first.sequence, first.kind) == (1, "message")
    assert first.body == {"role": "assistant", "text": "a"}
    assert isinstance(first.recorded_at, datetime)


class CountedReads:
    """Transcripts, and from where on their extent was asked for."""

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self.asked: list[int] = []

    async def written_after(self, run_id: UUID, *, after: int) -> Written:
        self.asked.append(after)
        return await self._transcripts.written_after(run_id, after=after)


async def test_extent_is_read_on_from_the_last(transcripts: Transcripts, scout: Scout) -> None:
    counted = CountedReads(transcripts)
    extents = WrittenExtents(cast("Transcripts", counted))
    assert await extents.of(scout.run_id, scout.epoch) == Written(0, 0)
    seen = []
    for first, more in ((1, said("a", "b")), (2, said("b", "c")), (4, said("d"))):
        assert await scout.append(first, more)
        seen.append(await extents.of(scout.run_id, scout.epoch))
    assert [item.last for item in seen] == [2, 3, 4]
    assert counted.asked == [0, 0, 2, 3]
    whole = await transcripts.written_after(scout.run_id, after=0)
    assert seen[-1] == whole
    assert whole.bytes == (await transcripts.extent_to(scout.run_id, last=9)).bytes
    # For another epoch, the extent is read again from the beginning.
    await extents.of(scout.run_id, scout.epoch + 1)
    assert counted.asked[-1] == 0


async def test_repeated_write_changes_nothing(scout: Scout) -> None:
    assert await scout.append(1, said("a", "b"))
    assert await scout.append(1, said("a", "b"))
    assert await scout.append(2, said("b", "c"))
    assert await scout.texts() == ["a", "b", "c"]


async def test_entries_need_the_claim(transcripts: Transcripts, family: LoggedFamily) -> None:
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
    assert await Scout(transcripts, family.run("scout")).texts() == ["in time"]


async def test_stop_at_once_is_no_lost_claim(
    postgres: RunningLog, family: LoggedFamily, scout: Scout
) -> None:
    async with held_commits(postgres.url) as commits:
        stopping = asyncio.create_task(family.tell("scout", ask.stop()))
        await commits.held()
        writing = asyncio.create_task(scout.append(1, said("a")))
        await commits.blocks_a_row()
        await commits.release()
        await stopping
        assert await writing
    assert await scout.texts() == ["a"]


async def test_end_at_once_refuses_entries(
    postgres: RunningLog, family: LoggedFamily, scout: Scout
) -> None:
    async with held_commits(postgres.url) as commits:
        ending = asyncio.create_task(family.end("scout"))
        await commits.held()
        writing = asyncio.create_task(scout.append(1, said("a")))
        await commits.blocks_a_row()
        await commits.release()
        await ending
        assert not await writing
    assert await scout.texts() == []


class WrittenBehindTheSeal:
    """Transcripts to which a frozen former holder adds an entry after each of the first seals."""

    def __init__(self, transcripts: Transcripts, epoch: int, times: int) -> None:
        self._transcripts = transcripts
        self._epoch = epoch
        self.left = times
        self.written = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transcripts, name)

    async def seal(self, run_id: UUID, **named: Any) -> SealedTranscript:
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
    work = work_on(running)
    files = files or WrittenFiles(running.registry(), transcripts)
    archiving = Archiver(work, transcripts, files)
    return RunFinalizer(
        work, transcripts, files, Announcer(work, cast("HookClient", None), transcripts), archiving
    )


async def test_seal_covers_what_is_written(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily, scout: Scout
) -> None:
    behind = WrittenBehindTheSeal(transcripts, family.run("scout").epoch, times=2)
    ended = await finalizer(running, behind).end(family.run("scout"), INTERRUPTED)
    assert ended.transcript is not None
    assert ended.transcript.count == behind.written == 2
    assert await scout.texts() == ["late", "late"]
    assert (await running.types()).count("RunEnded") == 1


async def test_growing_transcript_ends_its_run_later(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily, scout: Scout
) -> None:
    behind = WrittenBehindTheSeal(transcripts, family.run("scout").epoch, times=99)
    end = finalizer(running, behind).end
    with pytest.raises(LogUnavailableError, match="transcript of the run is still growing"):
        await end(family.run("scout"), INTERRUPTED)
    assert "RunEnded" not in await running.types()
    behind.left = 0
    ended = await end(family.run("scout"), INTERRUPTED)
    assert ended.transcript is not None
    assert ended.transcript.count == behind.written


async def test_locked_transcript_is_not_written(postgres: RunningLog, scout: Scout) -> None:
    async with held_commits(postgres.url) as commits:
        counting = await open_connection(postgres.url, application="counts")
        async with counting:
            await counting.execute("BEGIN")
            await counting.execute(LOCK_TRANSCRIPTS, [[scout.run_id]])
            writing = asyncio.create_task(scout.append(1, said("a")))
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
    postgres: RunningLog, name: str, scout: Scout
) -> None:
    assert await scout.append(1, [TranscriptEntry("text", ODD[name])])
    (entry,) = await scout.read(after=0, limit=9)
    assert set(entry.body) == set(ODD[name])
    path, sealed = await scout.written()
    assert sealed.count == 1
    (line,) = path.read_bytes().splitlines()
    assert orjson.loads(line).items() >= entry.body.items()
    if name in ("NUL", "controls", "emoji", "escapes", "long", "numbers", "nested"):
        assert entry.body == ODD[name]
    if name == "half a surrogate pair":
        assert entry.body == {"text": "a\ufffdb\0", "name": "\ufffd"}


async def test_seal_is_the_hash_of_the_file(
    postgres: RunningLog,
    scout: Scout,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(rows_and_files, "PAGE_ENTRIES", 3)
    await scout.append(1, said(*(f"line {number}" for number in range(10))))
    path, sealed = await scout.written()
    assert path == tmp_path / "transcripts" / "main" / f"{scout.run_id}.jsonl"
    content = path.read_bytes()
    assert (sealed.count, sealed.bytes) == (10, len(content))
    assert sealed.hmac == hmac.new(KEY, content, hashlib.sha256).hexdigest()
    lines = [orjson.loads(line) for line in content.splitlines()]
    assert [line["sequence"] for line in lines] == list(range(1, 11))
    assert lines[0].keys() == {"sequence", "recordedAt", "kind", "role", "text"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert await scout.written() == (path, sealed)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_silent_child_has_an_empty_transcript(postgres: RunningLog, scout: Scout) -> None:
    path, sealed = await scout.written()
    assert (sealed.count, sealed.bytes) == (0, 0)
    assert path.read_bytes() == b""


async def test_failed_file_leaves_what_was_there(
    postgres: RunningLog,
    transcripts: Transcripts,
    scout: Scout,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows_and_files, "PAGE_ENTRIES", 1)
    await scout.append(1, said("a", "b"))
    path, sealed = await scout.written()
    before = path.read_bytes()
    await postgres.ask("UPDATE transcript_entries SET body = '{' WHERE sequence = 2")
    with pytest.raises(orjson.JSONDecodeError):
        await transcripts.write_files([TranscriptFile(scout.run_id, str(path), sealed.bytes + 1)])
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_archived_file_is_renamed(
    transcripts: Transcripts, postgres: RunningLog, scout: Scout
) -> None:
    await scout.append(1, said("a"))
    path, sealed = await scout.written()
    number = path.stat().st_ino
    archived = TranscriptFile(scout.run_id, f"{path}{ARCHIVED_MARK}now", sealed.bytes)
    assert await transcripts.write_files([archived]) == [None]
    assert [(file.name, file.stat().st_ino) for file in path.parent.iterdir()] == [
        (f"{path.name}{ARCHIVED_MARK}now", number)
    ]
    # Another server, which did not know, was slower.
    await scout.written()
    assert await transcripts.write_files([archived]) == [None]
    assert [file.stat().st_ino for file in path.parent.iterdir()] == [number]


@pytest.mark.parametrize("archived", ["", f"{ARCHIVED_MARK}now"])
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: os.truncate(path, 3)])
async def test_damaged_file_is_written_under_its_present_name(
    transcripts: Transcripts,
    postgres: RunningLog,
    spoil: Callable[[Path], None],
    archived: str,
    scout: Scout,
) -> None:
    await scout.append(1, said("a", "b"))
    path, sealed = await scout.written()
    content = path.read_bytes()
    spoil(path)
    file = TranscriptFile(scout.run_id, f"{path}{archived}", sealed.bytes)
    assert await transcripts.write_files([file]) == [None]
    assert Path(file.path).read_bytes() == content
    # Archiving a session leaves no file under its former name.
    assert [path.name for path in path.parent.iterdir()] == [Path(file.path).name]


async def begun(transcripts: Transcripts, family: LoggedFamily, message: str) -> Run:
    await family.queue("scout")
    await family.tell("scout", ask.claim())
    await family.start_told("scout", transcripts.unwritten([message_entry(message)]))
    return family.run("scout")


async def test_first_entry_is_written_with_the_start(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    (started,) = await running.log.read(limit=1, types=("RunStarted",))
    (first,) = await transcripts.read(run.run_id, after=0, limit=9)
    assert (first.sequence, first.recorded_at) == (1, started.envelope.recorded_at)
    assert first.body == {"role": "user", "text": "look around"}
    assert await transcripts.count_until(run.run_id, first.recorded_at) == 1


async def test_entries_have_their_arrival_time(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    now = asyncio.get_running_loop().time()
    entries = [TranscriptEntry("text", {}, arrived_at) for arrived_at in (now - 60, now - 20)]
    assert await transcripts.append(run.run_id, run.epoch, 2, entries)
    first, second = await transcripts.read(run.run_id, after=1, limit=9)
    assert 39.9 < (second.recorded_at - first.recorded_at).total_seconds() < 40.1


async def test_later_entries_are_written_with_the_end(
    running: ServedLog, transcripts: Transcripts, family: LoggedFamily
) -> None:
    run = await begun(transcripts, family, "look around")
    now = asyncio.get_running_loop().time()
    entries = [
        TranscriptEntry("text", ODD[name], now - 60 + number)
        for number, name in enumerate(sorted(ODD))
    ]
    files = WrittenFiles(running.registry(), transcripts)
    unwritten = transcripts.unwritten((message_entry("look around"),))
    output = UnwrittenOutput(unwritten, entries)
    ended = await finalizer(running, transcripts, files).end(run, INTERRUPTED, output)
    assert ended.ended_at is not None
    rows = await transcripts.read(run.run_id, after=0, limit=99)
    assert [row.sequence for row in rows] == list(range(1, len(ODD) + 2))
    ages = [(ended.ended_at - row.recorded_at).total_seconds() for row in rows[1:]]
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


async def test_number_of_an_entry_is_unique(postgres: RunningLog, scout: Scout) -> None:
    await scout.append(1, said("a"))
    with pytest.raises(psycopg.IntegrityError):
        await postgres.ask("INSERT INTO transcript_entries TABLE transcript_entries")


# The first entries of a forked child.


async def test_repeated_fork_replaces_the_first(furnished: Scout) -> None:
    assert await furnished.fork(said("a", "b", "c"))
    assert await furnished.fork(said("A", "B"))
    assert await furnished.numbered() == [(1, "A"), (2, "B")]
    assert await furnished.fork([])
    assert await furnished.numbered() == []


async def test_fork_needs_the_claim(
    transcripts: Transcripts, family: LoggedFamily, furnished: Scout
) -> None:
    assert await furnished.fork(said("a"))
    await family.tell("scout", ask.resume(lost_epoch=furnished.epoch))
    held = family.run("scout").epoch
    assert held != furnished.epoch
    assert not await furnished.fork(said("late"))
    assert await furnished.numbered() == [(1, "a")], "what the other wrote stays for now"
    assert await transcripts.fork(furnished.run_id, held, said("b"))
    assert await furnished.numbered() == [(1, "b")]


async def test_fork_into_existing_child_is_refused(
    transcripts: Transcripts, family: LoggedFamily
) -> None:
    await family.queue("scout")
    scout, epoch = family.id("scout"), family.run("scout").epoch
    assert not await transcripts.fork(scout, epoch, said("late"))
    await family.execute("scout")
    assert not await transcripts.fork(scout, family.run("scout").epoch, said("late"))
    assert await Scout(transcripts, family.run("scout")).numbered() == []


async def test_refusal_at_once_keeps_a_fork_out(
    postgres: RunningLog, family: LoggedFamily, furnished: Scout
) -> None:
    async with held_commits(postgres.url) as commits:
        refusing = asyncio.create_task(family.tell("scout", ask.refuse(furnished.epoch)))
        await commits.held()
        forking = asyncio.create_task(furnished.fork(said("a")))
        await commits.blocks_a_row()
        await commits.release()
        await refusing
        assert not await forking
    assert await furnished.numbered() == []


async def test_only_refused_run_is_unforked(
    transcripts: Transcripts, family: LoggedFamily, furnished: Scout
) -> None:
    await furnished.fork(said("a"))
    assert not await transcripts.drop_fork(furnished.run_id)
    assert await furnished.numbered() == [(1, "a")]
    await family.tell("scout", ask.refuse(furnished.epoch))
    assert await transcripts.drop_fork(furnished.run_id)
    assert not await transcripts.drop_fork(furnished.run_id)
    assert await furnished.numbered() == []


async def test_extent_ends_before_first_late_entry(
    postgres: RunningLog, transcripts: Transcripts, scout: Scout
) -> None:
    entries: Sequence[TranscriptEntry] = [
        TranscriptEntry("usage", {"inputTokens": 5, "outputTokens": 2}),
        TranscriptEntry("text", {"text": "å"}),
        TranscriptEntry("usage", {"inputTokens": 50, "outputTokens": 20}),
        TranscriptEntry("text", {"text": "late"}),
    ]
    await scout.append(1, entries)
    noon = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
    for sequence, minutes in ((1, 0), (2, 1), (3, 5), (4, 2)):
        await postgres.ask(
            "UPDATE transcript_entries SET recorded_at = %s WHERE run_id = %s AND sequence = %s",
            noon + timedelta(minutes=minutes),
            scout.run_id,
            sequence,
        )

    async def extent(minutes: int) -> tuple[int, int, int | None]:
        found = await transcripts.extent(scout.run_id, until=noon + timedelta(minutes=minutes))
        return found.entries, found.bytes, found.last_usage_tokens

    sizes = [len(orjson.dumps(entry.body)) for entry in entries]
    assert await extent(-1) == (0, 0, None)
    assert await extent(0) == (1, sizes[0], 7)
    assert await extent(2) == (2, sum(sizes[:2]), 7), "the fourth is behind one that is later"
    assert await extent(5) == (4, sum(sizes), 70)


async def test_snapshot_is_private_and_whole(
    transcripts: Transcripts, tmp_path: Path, postgres: RunningLog, furnished: Scout
) -> None:
    await furnished.fork(said("a", "b", "c"))
    path = Path(await furnished.snapshot(2))
    assert path == tmp_path / "transcripts" / "main" / f"{furnished.session_id}.fork.jsonl"
    assert path == Path(*transcripts.fork_snapshot_place(furnished.session_id, "main"))
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [(line["sequence"], line["kind"], line["text"]) for line in lines] == [
        (1, "message", "a"),
        (2, "message", "b"),
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    before = path.stat()
    await furnished.snapshot(2)
    assert path.stat().st_mtime_ns == before.st_mtime_ns, "it was there"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_snapshot_is_dropped_with_its_parts(
    transcripts: Transcripts, postgres: RunningLog, furnished: Scout
) -> None:
    assert not await transcripts.drop_fork_snapshot(furnished.session_id, "main")
    await furnished.fork(said("a"))
    place = {"session_id": furnished.session_id, "agent_id": "main"}
    path = Path(await transcripts.write_fork_snapshot(furnished.run_id, count=1, **place))  # type: ignore[arg-type]
    path.with_name(f"{path.name}.1.part").write_text("half")
    (path.parent / f"{furnished.session_id}.jsonl").write_text("sealed")
    assert await transcripts.drop_fork_snapshot(furnished.session_id, "main")
    assert not await transcripts.drop_fork_snapshot(furnished.session_id, "main")
    assert [file.name for file in path.parent.iterdir()] == [f"{furnished.session_id}.jsonl"]


async def test_seal_covers_the_fork(
    transcripts: Transcripts, family: LoggedFamily, postgres: RunningLog, furnished: Scout
) -> None:
    await furnished.fork(said("a", "b"))
    await family.tell("scout", ask.take_step(furnished.epoch))
    await family.create("scout")
    await family.execute("scout")
    assert await transcripts.append(furnished.run_id, family.run("scout").epoch, 3, said("c"))
    sealed = await transcripts.seal(furnished.run_id, key=KEY)
    path = transcripts.file_path(furnished.run_id, session_id=furnished.run_id, agent_id="main")
    assert await transcripts.write_files(
        [TranscriptFile(furnished.run_id, path, sealed.bytes)]
    ) == [None]
    lines = Path(path).read_bytes().splitlines()
    assert [orjson.loads(line)["text"] for line in lines] == ["a", "b", "c"]
    assert sealed.count == 3
