"""Transcripts in memory: entries fenced by the holder's claim, and files by path."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

import orjson

from application.concurrency.flushes import Flushes
from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import (
    ARCHIVED_MARK,
    Extent,
    RecordedEntry,
    SealedTranscript,
    TranscriptFile,
    UnwrittenEntries,
    Written,
)
from domain.run.lifecycle import PREPARING
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.transcripts.rows import EncodedEntries, ages_of, stored_body
from tests.support.memory.store import Fault, Line, Store

FOLDER = "/transcripts"


class MemoryTranscripts:
    """Implements `Transcripts`."""

    def __init__(self, store: Store, line: Line) -> None:
        self._store = store
        self._line = line
        self.flushes: Flushes[UUID] = Flushes()

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries as number `first` and on. False when the claim was replaced."""

        ages = ages_of(entries)

        def written() -> bool:
            run = self._store.run(run_id)
            is_held = run is not None and (run.epoch, run.stage) == (epoch, "started")
            if not is_held and Fault.NO_TRANSCRIPT_FENCE not in self._store.faults:
                return False
            kept = self._store.entries.setdefault(run_id, {})
            for sequence, (entry, age) in enumerate(zip(entries, ages, strict=True), first):
                kept.setdefault(sequence, self._recorded(sequence, entry, age))
            return True

        return await self._line.ask(written, lambda: self._store.transcript_lock(run_id))

    def _recorded(
        self, sequence: int, entry: TranscriptEntry, age: timedelta = timedelta(0)
    ) -> RecordedEntry:
        body = orjson.loads(stored_body(entry))
        return RecordedEntry(sequence, self._store.now() - age, entry.kind, body)

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Return the entries after number `after`."""
        await self.flushes.flush(run_id)

        def found() -> list[RecordedEntry]:
            behind = [entry for entry in self._entries(run_id) if entry.sequence > after]
            return [item for item in behind if kinds is None or item.kind in kinds][:limit]

        return await self._line.ask(found)

    async def read_last(
        self, run_id: UUID, *, until: int | None, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        await self.flushes.flush(run_id)

        def found() -> list[RecordedEntry]:
            known = [
                entry for entry in self._entries(run_id) if until is None or entry.sequence <= until
            ]
            return [item for item in known if kinds is None or item.kind in kinds][-limit:]

        return await self._line.ask(found)

    async def last_entries(self, run_ids: Collection[UUID]) -> Mapping[UUID, int]:
        def found() -> dict[UUID, int]:
            last = {item: max(self._store.entries.get(item, {}), default=0) for item in run_ids}
            return {run_id: number for run_id, number in last.items() if number}

        return await self._line.ask(found)

    async def read_on(
        self,
        afters: Mapping[UUID, int],
        *,
        limit: int,
        kinds: Sequence[str],
        until: datetime | None = None,
    ) -> Mapping[UUID, Sequence[RecordedEntry]]:
        def found() -> dict[UUID, list[RecordedEntry]]:
            return {
                run_id: [
                    entry
                    for entry in self._entries(run_id)
                    if entry.sequence > after
                    and entry.kind in kinds
                    and (until is None or entry.recorded_at <= until)
                ][:limit]
                for run_id, after in afters.items()
            }

        return await self._line.ask(found)

    async def grown(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Wait for an entry after number `after`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        while (await self._current(run_id)) <= after:
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(0.01)
        return True

    async def _current(self, run_id: UUID) -> int:
        await self.flushes.flush(run_id)
        return (await self.last_entries((run_id,))).get(run_id, 0)

    async def count_until(self, run_id: UUID, instant: datetime) -> int:
        """Return the number of first entries that were stored by an instant."""
        await self.flushes.flush(run_id)

        def found() -> int:
            entries = self._entries(run_id)
            late = [entry.sequence for entry in entries if entry.recorded_at > instant]
            return min(late) - 1 if late else max((entry.sequence for entry in entries), default=0)

        return await self._line.ask(found)

    def _entries(self, run_id: UUID) -> list[RecordedEntry]:
        kept = self._store.entries.get(run_id, {})
        return [kept[sequence] for sequence in sorted(kept)]

    def unwritten(self, entries: Sequence[TranscriptEntry]) -> UnwrittenEntries:
        return EncodedEntries.of(entries)

    async def seal(self, run_id: UUID, *, key: bytes) -> SealedTranscript:
        entries = await self._line.ask(lambda: self._entries(run_id))
        whole = b"".join(transcript_line(entry) for entry in entries)
        digest = hmac.new(key, whole, hashlib.sha256).hexdigest()
        last = entries[-1].sequence if entries else 0
        return SealedTranscript(len(entries), last, len(whole), digest)

    def file_path(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, continues: bool = False
    ) -> str:
        name = f"{session_id}.{run_id}.jsonl" if continues else f"{session_id}.jsonl"
        return f"{FOLDER}/{agent_id}/{name}"

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        """See to it that each file is at its path, whole."""
        for file in files:
            before = file.path.partition(ARCHIVED_MARK)[0]
            found = self._store.files.pop(before, None)
            if found is None and file.path not in self._store.files:
                found = await self._line.ask(partial(self._lines, file.run_id))
            if found is not None:
                self._store.files[file.path] = found
        return [None] * len(files)

    def _lines(self, run_id: UUID) -> tuple[bytes, ...]:
        return tuple(transcript_line(entry) for entry in self._entries(run_id))

    async def last_recorded_at(self, run_id: UUID) -> datetime | None:
        """Return the time of the last entry of a run, or None without one."""
        entries = await self._line.ask(lambda: self._entries(run_id))
        return max((entry.recorded_at for entry in entries), default=None)

    async def extent(self, run_id: UUID, *, until: datetime) -> Extent:
        """Return the extent of the entries stored by `until`."""
        return await self._extent(run_id, lambda entry: entry.recorded_at <= until)

    async def extent_to(self, run_id: UUID, *, last: int) -> Extent:
        """Return the extent of the entries up to number `last`."""
        return await self._extent(run_id, lambda entry: entry.sequence <= last)

    async def written_after(self, run_id: UUID, *, after: int) -> Written:
        """Return the last entry, and the bytes of those after number `after`."""
        entries = await self._line.ask(lambda: self._entries(run_id))
        behind = [entry for entry in entries if entry.sequence > after]
        last = behind[-1].sequence if behind else after
        return Written(last, sum(len(orjson.dumps(item.body)) for item in behind))

    async def _extent(self, run_id: UUID, is_in: Callable[[RecordedEntry], bool]) -> Extent:
        await self.flushes.flush(run_id)
        count = size = 0
        tokens: int | None = None
        for entry in await self._line.ask(lambda: self._entries(run_id)):
            if not is_in(entry):
                break
            count, size = entry.sequence, size + len(orjson.dumps(entry.body))
            if entry.kind == "usage":
                counts = (entry.body.get("inputTokens"), entry.body.get("outputTokens"))
                tokens = sum(each for each in counts if isinstance(each, int))
        return Extent(count, size, tokens)

    async def fork(self, run_id: UUID, epoch: int, entries: Sequence[TranscriptEntry]) -> bool:
        """Write the entries that a child begins with, replacing earlier ones."""

        def written() -> bool:
            run = self._store.run(run_id)
            if run is None or run.epoch != epoch or run.stage not in PREPARING:
                return False
            self._store.entries[run_id] = {
                sequence: self._recorded(sequence, entry)
                for sequence, entry in enumerate(entries, 1)
            }
            return True

        return await self._line.ask(written)

    async def drop_fork(self, run_id: UUID) -> bool:
        """Remove the entries of a run that was refused; whether there were any."""

        def dropped() -> bool:
            run = self._store.run(run_id)
            is_refused = run is not None and run.stage == "refused"
            return is_refused and bool(self._store.entries.pop(run_id, None))

        return await self._line.ask(dropped)

    def fork_snapshot_place(self, session_id: UUID, agent_id: str) -> tuple[str, str]:
        return FOLDER, f"{agent_id}/{session_id}.fork.jsonl"

    async def write_fork_snapshot(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, count: int
    ) -> str:
        """Write the file of the first `count` entries; gives its path."""
        entries = await self._line.ask(lambda: self._entries(run_id)[:count])
        path = "/".join(self.fork_snapshot_place(session_id, agent_id))
        self._store.files[path] = tuple(transcript_line(entry) for entry in entries)
        return path

    async def drop_fork_snapshot(self, session_id: UUID, agent_id: str) -> bool:
        """Remove that file; whether it was there."""
        path = "/".join(self.fork_snapshot_place(session_id, agent_id))
        return self._store.files.pop(path, None) is not None
