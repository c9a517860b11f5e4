"""Output is written in batches, at once for a reader, or at the end; none is lost."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from application.execution import entry_writer
from application.execution.entry_writer import FLUSH_ENTRIES, EntryWriter
from application.log.event_log import LogUnavailableError
from application.ports.runtimes import TranscriptEntry

WAIT_SECONDS = 10.0


class Child:
    """Child whose output comes when a test says so."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[str | Exception | None] = asyncio.Queue()

    def says(self, *texts: str) -> None:
        for text in texts:
            self._told.put_nowait(text)

    def ends(self, failure: Exception | None = None) -> None:
        self._told.put_nowait(failure)

    async def entries(self) -> AsyncIterator[TranscriptEntry]:
        while (result := await self._told.get()) is not None:
            if isinstance(result, Exception):
                raise result
            yield TranscriptEntry("text", {"text": result})


class Rows:
    """Rows of a transcript; if `away`, writes fail."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[str]]] = []
        self.entries: list[TranscriptEntry] = []
        self.is_fenced = False
        self.away = 0

    async def append(self, first: int, entries: Sequence[TranscriptEntry]) -> bool:
        if self.away:
            self.away -= 1
            raise LogUnavailableError("away")
        if self.is_fenced:
            return False
        self.batches.append((first, [str(entry.body["text"]) for entry in entries]))
        self.entries += entries
        return True


def writer_of(rows: Rows, *, keeps_for_end: bool = True) -> EntryWriter:
    return EntryWriter(rows.append, written=1, keeps_for_end=keeps_for_end, given_up=lambda: False)


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def child() -> Child:
    return Child()


@pytest.mark.parametrize(
    ("keeps_for_end", "texts", "batches", "unwritten"),
    [
        (True, ["a", "b"], [], ["a", "b"]),
        (True, [], [], []),
        (False, ["a"], [(2, ["a"])], None),
    ],
    ids=["short run", "silent run", "behind inherited entries"],
)
async def test_entries_are_left_to_the_end_or_written_before_it(
    rows: Rows,
    child: Child,
    keeps_for_end: bool,
    texts: list[str],
    batches: list[tuple[int, list[str]]],
    unwritten: list[str] | None,
) -> None:
    writer = writer_of(rows, keeps_for_end=keeps_for_end)
    child.says(*texts)
    child.ends()
    assert await writer.write(child.entries())
    assert rows.batches == batches
    left = writer.unwritten
    assert (None if left is None else [item.body["text"] for item in left]) == unwritten


async def test_batch_is_written_before_the_end(rows: Rows, child: Child) -> None:
    writer = writer_of(rows)
    writing = asyncio.create_task(writer.write(child.entries()))
    child.says("a")
    async with asyncio.timeout(WAIT_SECONDS):
        while not rows.batches:
            await asyncio.sleep(0.01)
    child.says("b")
    child.ends()
    assert await writing
    assert (rows.batches, writer.unwritten) == ([(2, ["a"]), (3, ["b"])], None)


async def test_full_batch_is_not_held_back(
    rows: Rows, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_writer, "FLUSH_SECONDS", 60.0)
    child.says(*(str(number) for number in range(FLUSH_ENTRIES + 1)))
    child.ends()
    assert await writer_of(rows).write(child.entries())
    assert [(first, len(texts)) for first, texts in rows.batches] == [
        (2, FLUSH_ENTRIES),
        (2 + FLUSH_ENTRIES, 1),
    ]


async def test_flush_writes_ready_output(
    rows: Rows, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_writer, "FLUSH_SECONDS", 60.0)
    writer = writer_of(rows)
    writing = asyncio.create_task(writer.write(child.entries()))
    child.says("a", "b")
    await writer.flush()
    assert rows.batches == [(2, ["a", "b"])]
    await writer.flush()
    assert len(rows.batches) == 1
    child.says("c")
    child.ends()
    assert await writing
    assert (rows.batches[1:], writer.unwritten) == ([(4, ["c"])], None)


async def test_flush_waits_for_the_end(rows: Rows, child: Child) -> None:
    writer = writer_of(rows)
    child.says("a")
    child.ends()
    assert await writer.write(child.entries())
    reading = asyncio.create_task(writer.flush())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not reading.done()
    writer.end()
    await reading
    assert rows.batches == []


async def test_output_before_a_failure_is_written(rows: Rows, child: Child) -> None:
    writer = writer_of(rows)
    child.says("a")
    child.ends(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        await writer.write(child.entries())
    assert (rows.batches, writer.unwritten) == ([(2, ["a"])], None)


async def test_replaced_claim_ends_the_writing(rows: Rows, child: Child) -> None:
    rows.is_fenced = True
    writing = asyncio.create_task(writer_of(rows).write(child.entries()))
    child.says("a")
    assert not await asyncio.wait_for(writing, WAIT_SECONDS)
    assert rows.entries == []


async def test_entries_keep_their_times_offline(
    rows: Rows, child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_writer, "FLUSH_SECONDS", 0.01)
    loop = asyncio.get_running_loop()
    rows.away = 1
    writing = asyncio.create_task(writer_of(rows).write(child.entries()))
    child.says("a")
    async with asyncio.timeout(WAIT_SECONDS):
        while rows.away:
            await asyncio.sleep(0.001)
    # The writer pauses before a retry, and continues to read meanwhile.
    began = loop.time()
    child.says("b")
    for _ in range(20):
        await asyncio.sleep(0)
    read_by = loop.time()
    child.ends()
    assert await writing
    assert [text for _, texts in rows.batches for text in texts] == ["a", "b"]
    assert began <= (rows.entries[1].arrived_at or 0.0) <= read_by


@pytest.mark.parametrize(
    ("keeps_for_end", "count", "batches"),
    [(True, 2, 0), (True, FLUSH_ENTRIES, 1), (False, 2, 1)],
    ids=["few", "many", "inherited"],
)
async def test_ready_entries_are_kept_for_the_end_or_written_at_once(
    rows: Rows, keeps_for_end: bool, count: int, batches: int
) -> None:
    writer = writer_of(rows, keeps_for_end=keeps_for_end)
    entries = [TranscriptEntry("text", {"text": str(number)}) for number in range(count)]
    assert await writer.write_ready(entries)
    assert len(rows.batches) == batches
    assert [*(writer.unwritten or ()), *rows.entries] == entries


async def test_ready_entries_of_a_replaced_claim_are_refused(rows: Rows) -> None:
    rows.is_fenced = True
    writer = writer_of(rows, keeps_for_end=False)
    assert not await writer.write_ready([TranscriptEntry("text", {"text": "a"})])
