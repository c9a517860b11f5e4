"""Transcripts as rows fenced by the holder's epoch, and as files written atomically."""

import asyncio
import hashlib
import hmac
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.concurrency.flushes import Flushes
from application.log.event_log import LogUnavailableError
from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import (
    Extent,
    RecordedEntry,
    SealedTranscript,
    TranscriptFile,
    UnwrittenEntries,
    Written,
)
from application.projections.fold import FOREVER
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection
from infrastructure.outbound.transcripts import fork_snapshots
from infrastructure.outbound.transcripts.files import (
    KnownFile,
    TranscriptFolders,
    atomic_file_async,
    drop_former,
    drop_parts_of_the_dead,
    place_of,
    write_known_files,
)
from infrastructure.outbound.transcripts.growth import TranscriptGrowth
from infrastructure.outbound.transcripts.rows import (
    EncodedEntries,
    ages_of,
    count_until,
    extent_of,
    extent_to,
    last_entries,
    last_recorded_at,
    pages,
    read_last_rows,
    read_rows,
    read_rows_of_runs,
    stored_body,
    written_after,
)

PAGE_ENTRIES = 1_000
ATTEMPTS_MAX = 10

# The row lock on the run's current row makes this write and an append that ends the run wait for
# each other: no entry is added after the end.
_FENCED = (
    "WITH held AS MATERIALIZED (SELECT run_id FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND epoch = %(epoch)s AND stage = 'started' FOR SHARE)"
    ", written AS (INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT held.run_id, t.sequence, statement_timestamp() - t.age, t.kind, t.body FROM held,"
    " unnest(%(sequences)s::int[], %(ages)s::interval[], %(kinds)s::text[], %(bodies)s::text[])"
    " AS t (sequence, age, kind, body) ON CONFLICT DO NOTHING)"
    " SELECT count(*) FROM held"
)
_STILL_HELD = (
    "SELECT 1 FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND epoch = %(epoch)s AND stage = 'started'"
)


class StoredTranscripts:
    """Transcripts in the database and in files; implements `Transcripts`.

    Files have mode 0600 and are named `<folder>/<agent id>/<session id>.jsonl`. For a run that
    continues a session, the name is `<session id>.<run id>.jsonl`; for a child's fork snapshot, it
    ends in `.fork.jsonl`.
    """

    def __init__(self, pool: AsyncConnectionPool[LogConnection], folder: Path) -> None:
        self._pool = pool
        self._folders = TranscriptFolders(folder)
        self._writing = asyncio.Lock()
        self._flushes: Flushes[UUID] = Flushes()
        self._growth = TranscriptGrowth(self.last_entries)

    @property
    def flushes(self) -> Flushes[UUID]:
        """Return the flushes that write a run's entries that this process still buffers."""
        return self._flushes

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries numbered from `first`, each with the time of its arrival.

        Returns:
            False if the claim of this epoch was replaced or the run has ended. Nothing is written
            then.

        Raises:
            LogUnavailableError: The run's row changed in each of `ATTEMPTS_MAX` attempts, or the
                database is unavailable.
        """
        values: dict[str, object] = {
            "run_id": run_id,
            "epoch": epoch,
            "sequences": list(range(first, first + len(entries))),
            "kinds": [entry.kind for entry in entries],
            "bodies": [stored_body(entry) for entry in entries],
        }
        async with borrow_connection(self._pool) as connection:
            for _ in range(ATTEMPTS_MAX):
                values["ages"] = list(ages_of(entries))
                held = await (await connection.execute(_FENCED, values)).fetchone()
                assert held is not None
                if held[0]:
                    return True
                # An append that keeps the claim, such as a stop request, replaces the row that was
                # waited for. The statement could not see the new row, so try again.
                if await (await connection.execute(_STILL_HELD, values)).fetchone() is None:
                    return False
        raise LogUnavailableError(
            "the run changes too fast to write its transcript; retry in a moment"
        )

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Return the entries after number `after`."""
        await self._flushes.flush(run_id)
        return await read_rows(self._pool, run_id, after=after, limit=limit, kinds=kinds)

    async def read_last(
        self, run_id: UUID, *, until: int | None, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Return the last entries, in order."""
        await self._flushes.flush(run_id)
        return await read_last_rows(self._pool, run_id, until=until, limit=limit, kinds=kinds)

    async def last_entries(self, run_ids: Collection[UUID]) -> Mapping[UUID, int]:
        """Return the number of the last written entry of each run that has any."""
        return await last_entries(self._pool, run_ids)

    async def read_on(
        self,
        afters: Mapping[UUID, int],
        *,
        limit: int,
        kinds: Sequence[str],
        until: datetime | None = None,
    ) -> Mapping[UUID, Sequence[RecordedEntry]]:
        """Return the written entries of several runs, each after its own number."""
        return await read_rows_of_runs(self._pool, afters, limit=limit, kinds=kinds, until=until)

    async def grown(self, run_id: UUID, *, after: int, timeout_seconds: float) -> bool:
        """Wait for an entry after number `after`. Return False on timeout."""
        return await self._growth.wait(run_id, after=after, timeout_seconds=timeout_seconds)

    async def count_until(self, run_id: UUID, instant: datetime) -> int:
        """Return the number of leading entries that were recorded by an instant."""
        await self._flushes.flush(run_id)
        return await count_until(self._pool, run_id, instant)

    async def last_recorded_at(self, run_id: UUID) -> datetime | None:
        """Return the time of a run's last entry, or None if it has none."""
        return await last_recorded_at(self._pool, run_id)

    async def extent(self, run_id: UUID, *, until: datetime) -> Extent:
        """Return the extent of the entries recorded by `until`."""
        await self._flushes.flush(run_id)
        return await extent_of(self._pool, run_id, until=until)

    async def extent_to(self, run_id: UUID, *, last: int) -> Extent:
        """Return the extent of the entries up to number `last`."""
        await self._flushes.flush(run_id)
        return await extent_to(self._pool, run_id, last=last)

    async def written_after(self, run_id: UUID, *, after: int) -> Written:
        """Return the number of the last entry, and the bytes of the entries after number
        `after`."""
        return await written_after(self._pool, run_id, after=after)

    async def fork(self, run_id: UUID, epoch: int, entries: Sequence[TranscriptEntry]) -> bool:
        """Write the entries that a child begins with, replacing those of an earlier attempt. Return
        False if the claim was replaced or the run is past its preparation."""
        return await fork_snapshots.fork_rows(self._pool, run_id, epoch, entries)

    async def drop_fork(self, run_id: UUID) -> bool:
        """Delete the entries of a refused run. Return True if there were any."""
        return await fork_snapshots.unfork_rows(self._pool, run_id)

    def fork_snapshot_place(self, session_id: UUID, agent_id: str) -> tuple[str, str]:
        """Return the place of a child's fork snapshot: a folder and the path below it."""
        return str(self._folders.path), f"{agent_id}/{_snapshot_name(session_id)}"

    async def write_fork_snapshot(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, count: int
    ) -> str:
        """Write the file of the first `count` entries, unless it exists with this content. Return
        its path."""
        await fork_snapshots.write_fork_snapshot(
            self._pool,
            self._folders,
            run_id,
            agent_id=agent_id,
            name=_snapshot_name(session_id),
            count=count,
        )
        return "/".join(self.fork_snapshot_place(session_id, agent_id))

    async def drop_fork_snapshot(self, session_id: UUID, agent_id: str) -> bool:
        """Delete the fork snapshot. Return True if it existed."""
        return await fork_snapshots.drop_fork_snapshot(
            self._folders, agent_id=agent_id, name=_snapshot_name(session_id)
        )

    def unwritten(self, entries: Sequence[TranscriptEntry]) -> UnwrittenEntries:
        """Return entries encoded for an append of the log to write."""
        return EncodedEntries.of(entries)

    async def seal(self, run_id: UUID, *, key: bytes) -> SealedTranscript:
        """Return the seal of a run's rows: count, last number, bytes and keyed hash."""
        digest = hmac.new(key, digestmod=hashlib.sha256)
        count = last = size = 0
        async for page in pages(self._pool, run_id, size=PAGE_ENTRIES):
            lines = b"".join(transcript_line(entry) for entry in page)
            digest.update(lines)
            count, last = count + len(page), page[-1].sequence
            size += len(lines)
        return SealedTranscript(count, last, size, digest.hexdigest())

    def file_path(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, continues: bool = False
    ) -> str:
        """Return the path of a run's transcript file."""
        name = f"{session_id}.{run_id}.jsonl" if continues else f"{session_id}.jsonl"
        return str(self._folders.path / agent_id / name)

    async def write_files(
        self, files: Sequence[TranscriptFile], *, are_left: bool = False
    ) -> Sequence[OSError | None]:
        """Ensure that each file is complete at its path. Return the error of each file, or None.

        With `are_left`, a process that died may have tried before: delete its part files.
        """
        # A process has one part-file name per transcript, so writes must not overlap.
        async with self._writing:
            failures, missing = await asyncio.to_thread(_write_known, self._folders, files)
            for number in missing:
                failures[number] = await self._write_from_rows(files[number])
            for file, failure in zip(files if are_left else (), failures, strict=False):
                if failure is None:
                    await asyncio.to_thread(drop_parts_of_the_dead, self._folders, file.path)
        return failures

    async def _write_from_rows(self, file: TranscriptFile) -> OSError | None:
        agent_id, name = place_of(file.path)
        try:
            async with atomic_file_async(self._folders, agent_id, name) as part:
                async for page in pages(self._pool, file.run_id, size=PAGE_ENTRIES):
                    lines = b"".join(transcript_line(entry) for entry in page)
                    await asyncio.to_thread(part.write, lines)
            await asyncio.to_thread(drop_former, self._folders, file.path)
        except OSError as failure:
            return failure
        return None


def _write_known(
    folders: TranscriptFolders, files: Sequence[TranscriptFile]
) -> tuple[list[OSError | None], list[int]]:
    """Write the files whose lines are known, and look for the others. Blocks.

    Returns:
        The error of each file or None, and the numbers of the files that must be written from rows.
    """
    failures: list[OSError | None] = [None] * len(files)
    of_agents: dict[str, dict[int, KnownFile]] = {}
    missing: list[int] = []
    for number, file in enumerate(files):
        try:
            agent_id, name = place_of(file.path)
        except OSError as failure:
            failures[number] = failure
            continue
        known = KnownFile(name, file.size_bytes, file.lines)
        of_agents.setdefault(agent_id, {})[number] = known
    for agent_id, numbered in of_agents.items():
        results: Sequence[bool | OSError]
        try:
            results = write_known_files(folders, agent_id, tuple(numbered.values()))
        except OSError as failure:
            results = [failure] * len(numbered)
        for number, result in zip(numbered, results, strict=True):
            if isinstance(result, OSError):
                failures[number] = result
            elif not result:
                missing.append(number)
    return failures, missing


def _snapshot_name(session_id: UUID) -> str:
    return f"{session_id}.fork.jsonl"
