"""Transcripts as rows fenced by the holder's epoch, and as files that appear whole or not."""

import asyncio
import glob
import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import orjson
from psycopg_pool import AsyncConnectionPool

from application.ports.event_log import LogUnavailable
from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import RecordedEntry, SealedTranscript
from application.projections.fold import FOREVER
from domain.bounded_text import storable
from infrastructure.outbound.log.connections import Connection, borrowed

PAGE_ENTRIES = 1_000
ATTEMPTS_MAX = 10

# The row lock on the run's open state makes an append that ends the run wait for this write, and
# this write wait for it: after the end not one entry is added.
_FENCED = (
    "WITH held AS MATERIALIZED (SELECT run_id FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND epoch = %(epoch)s AND stage = 'started' FOR SHARE)"
    ", written AS (INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT held.run_id, t.sequence, clock_timestamp(), t.kind, t.body FROM held,"
    " unnest(%(sequences)s::int[], %(kinds)s::text[], %(bodies)s::text[])"
    " AS t (sequence, kind, body) ON CONFLICT DO NOTHING)"
    " SELECT count(*) FROM held"
)
_STILL_HELD = (
    "SELECT 1 FROM runs WHERE run_id = %(run_id)s"
    f" AND to_position = {FOREVER} AND epoch = %(epoch)s AND stage = 'started'"
)


class RowsAndFiles:
    """Implements `Transcripts`. Files are `<folder>/<agent id>/<session id>.jsonl`, mode 0600."""

    def __init__(self, pool: AsyncConnectionPool[Connection], folder: Path) -> None:
        self._pool = pool
        self._folder = folder

    async def append(
        self, run_id: UUID, epoch: int, first: int, entries: Sequence[TranscriptEntry]
    ) -> bool:
        """Write entries as number `first` and on."""
        values = {
            "run_id": run_id,
            "epoch": epoch,
            "sequences": list(range(first, first + len(entries))),
            "kinds": [entry.kind for entry in entries],
            "bodies": [_storable(entry) for entry in entries],
        }
        async with borrowed(self._pool) as connection:
            for _ in range(ATTEMPTS_MAX):
                held = await (await connection.execute(_FENCED, values)).fetchone()
                assert held is not None
                if held[0]:
                    return True
                # An append that leaves the claim as it is, a wish to stop, closes the row that
                # was waited for and opens another one, which that statement could not see.
                if await (await connection.execute(_STILL_HELD, values)).fetchone() is None:
                    return False
        raise LogUnavailable("the run changes too fast to be written about; ask again in a moment")

    async def read(
        self, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
    ) -> Sequence[RecordedEntry]:
        """Entries behind number `after`."""
        wanted = list(kinds) if kinds is not None else None
        async with borrowed(self._pool) as connection:
            cursor = await connection.execute(
                "SELECT sequence, recorded_at, kind, body FROM transcript_entries"
                " WHERE run_id = %s AND sequence > %s AND (%s::text[] IS NULL OR kind = ANY(%s))"
                " ORDER BY sequence LIMIT %s",
                [run_id, after, wanted, wanted, limit],
            )
            rows: list[Any] = await cursor.fetchall()
        return [RecordedEntry(row[0], row[1], row[2], orjson.loads(row[3])) for row in rows]

    async def seal(
        self, run_id: UUID, *, session_id: UUID, agent_id: str, key: bytes
    ) -> SealedTranscript:
        """Write the file and say what is in it."""
        target = self._folder / agent_id / f"{session_id}.jsonl"
        digest = hmac.new(key, digestmod=hashlib.sha256)
        count = size = 0
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        file = await asyncio.to_thread(_opened, part)
        try:
            async for page in self._pages(run_id):
                lines = b"".join(line_of(entry) for entry in page)
                digest.update(lines)
                count += len(page)
                size += len(lines)
                await asyncio.to_thread(file.write, lines)
            await asyncio.to_thread(_finish, file, part, target)
        except BaseException:
            file.close()
            part.unlink(missing_ok=True)
            raise
        return SealedTranscript(count, size, digest.hexdigest(), str(target))

    async def _pages(self, run_id: UUID) -> AsyncIterator[Sequence[RecordedEntry]]:
        after = 0
        while page := await self.read(run_id, after=after, limit=PAGE_ENTRIES):
            yield page
            if len(page) < PAGE_ENTRIES:
                return
            after = page[-1].sequence

    async def put_away(self, path: str, stamp: str) -> str:
        """Rename a transcript; one that was put away before keeps its name."""
        return await asyncio.to_thread(self._put_away, Path(path), stamp)

    def _put_away(self, path: Path, stamp: str) -> str:
        renamed = path.with_name(f"{path.name}.deleted.{stamp}")
        try:
            path.rename(renamed)
        except FileNotFoundError:
            earlier = sorted(path.parent.glob(f"{glob.escape(path.name)}.deleted.*"))
            return str(earlier[0] if earlier else renamed)
        return str(renamed)


def _storable(entry: TranscriptEntry) -> str:
    # PostgreSQL text cannot hold NUL, and JSON may carry it only escaped: a program can print it.
    try:
        return orjson.dumps(entry.body, default=str).decode()
    except TypeError:
        # Half of a surrogate pair, or a number of more than 64 bits.
        return storable(json.dumps(entry.body, default=str, ensure_ascii=False))


def line_of(entry: RecordedEntry) -> bytes:
    """The line of an entry in a transcript's file; the seal is made over all of them."""
    return orjson.dumps(
        {
            "sequence": entry.sequence,
            "recordedAt": entry.recorded_at,
            "kind": entry.kind,
            **entry.body,
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _opened(path: Path) -> BinaryIO:
    # Parents made on the way get the common mode, so the private one is made first.
    path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _finish(file: BinaryIO, part: Path, target: Path) -> None:
    with file:
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)
