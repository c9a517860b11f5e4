"""Reads of transcript rows."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

import orjson
from psycopg_pool import AsyncConnectionPool

from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import Extent, RecordedEntry, Written
from domain.values.text import replace_unstorable
from infrastructure.outbound.log.append.load import LAST_ENTRIES
from infrastructure.outbound.log.codec.transcript_line import transcript_line
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

PAGE_ENTRIES = 1_000
_READ = (
    "SELECT sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE run_id = %s AND sequence > %s AND (%s::text[] IS NULL OR kind = ANY(%s))"
    " ORDER BY sequence LIMIT %s"
)

# The first entry after the instant ends the count, whatever times later entries have.
_EXTENT = (
    "WITH one AS (SELECT sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE run_id = %(run_id)s), ended AS (SELECT COALESCE("
    "(SELECT min(sequence) - 1 FROM one WHERE recorded_at > %(until)s),"
    " (SELECT max(sequence) FROM one), 0) AS last)"
    " SELECT ended.last, (SELECT COALESCE(sum(octet_length(body)), 0) FROM one"
    " WHERE sequence <= ended.last), (SELECT body FROM one WHERE sequence <= ended.last"
    " AND kind = 'usage' ORDER BY sequence DESC LIMIT 1) FROM ended"
)
Pool = AsyncConnectionPool[LogConnection]


async def read_rows(
    pool: Pool, run_id: UUID, *, after: int, limit: int, kinds: Sequence[str] | None = None
) -> Sequence[RecordedEntry]:
    """Return the entries after number `after`, at most `limit`, of these kinds if given."""
    names = list(kinds) if kinds is not None else None
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_READ, [run_id, after, names, names, limit])
        rows: list[Any] = await cursor.fetchall()
    return [RecordedEntry(row[0], row[1], row[2], orjson.loads(row[3])) for row in rows]


# Each run separately by the key.
_READ_OF_RUNS = (
    "SELECT t.run_id, one.* FROM unnest(%s::uuid[], %s::int[]) AS t (run_id, after)"
    " CROSS JOIN LATERAL (SELECT sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE transcript_entries.run_id = t.run_id AND sequence > t.after AND kind = ANY(%s)"
    " AND (%s::timestamptz IS NULL OR recorded_at <= %s) ORDER BY sequence LIMIT %s) AS one"
)


async def read_rows_of_runs(
    pool: Pool,
    afters: Mapping[UUID, int],
    *,
    limit: int,
    kinds: Sequence[str],
    until: datetime | None = None,
) -> Mapping[UUID, Sequence[RecordedEntry]]:
    """Return entries of several runs, each after its own number and recorded by `until`, at most
    `limit` per run."""
    found: dict[UUID, list[RecordedEntry]] = {}
    async with borrow_connection(pool) as connection:
        values = [list(afters), list(afters.values()), list(kinds), until, until, limit]
        rows: list[Any] = await (await connection.execute(_READ_OF_RUNS, values)).fetchall()
    for run_id, sequence, recorded_at, kind, body in rows:
        entry = RecordedEntry(sequence, recorded_at, kind, orjson.loads(body))
        found.setdefault(run_id, []).append(entry)
    return found


_READ_LAST = (
    "SELECT sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE run_id = %s AND (%s::int IS NULL OR sequence <= %s)"
    " AND (%s::text[] IS NULL OR kind = ANY(%s)) ORDER BY sequence DESC LIMIT %s"
)


async def read_last_rows(
    pool: Pool, run_id: UUID, *, until: int | None, limit: int, kinds: Sequence[str] | None = None
) -> Sequence[RecordedEntry]:
    """Return the last entries, in order."""
    names = list(kinds) if kinds is not None else None
    async with borrow_connection(pool) as connection:
        values = [run_id, until, until, names, names, limit]
        rows: list[Any] = await (await connection.execute(_READ_LAST, values)).fetchall()
    found = [RecordedEntry(row[0], row[1], row[2], orjson.loads(row[3])) for row in rows]
    return found[::-1]


# The first entry after the instant ends the count, whatever times later entries have.
_COUNT_UNTIL = (
    "SELECT COALESCE((SELECT min(sequence) - 1 FROM transcript_entries"
    " WHERE run_id = %(run_id)s AND recorded_at > %(instant)s),"
    " (SELECT max(sequence) FROM transcript_entries WHERE run_id = %(run_id)s), 0)"
)


async def count_until(pool: Pool, run_id: UUID, instant: datetime) -> int:
    """Return the number of leading entries that were recorded by an instant."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_COUNT_UNTIL, {"run_id": run_id, "instant": instant})
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def pages(
    pool: Pool, run_id: UUID, *, until: int | None = None, size: int = PAGE_ENTRIES
) -> AsyncIterator[Sequence[RecordedEntry]]:
    """Yield all entries of a run page by page, up to number `until`."""
    after = 0
    while until is None or after < until:
        limit = size if until is None else min(size, until - after)
        page = await read_rows(pool, run_id, after=after, limit=limit)
        if page:
            yield page
        if len(page) < limit:
            return
        after = page[-1].sequence


async def last_entries(pool: Pool, run_ids: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the number of the last entry of each run that has any."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(LAST_ENTRIES, [list(run_ids)])
        return {row[0]: row[1] for row in await cursor.fetchall()}


_LAST_RECORDED_AT = (
    "SELECT recorded_at FROM transcript_entries WHERE run_id = %s ORDER BY sequence DESC LIMIT 1"
)


async def last_recorded_at(pool: Pool, run_id: UUID) -> datetime | None:
    """Return the time of a run's last entry, or None if it has none."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_LAST_RECORDED_AT, [run_id])
        row = await cursor.fetchone()
    return row[0] if row is not None else None


async def extent_of(pool: Pool, run_id: UUID, *, until: datetime) -> Extent:
    """Return the extent of the entries recorded by `until`."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_EXTENT, {"run_id": run_id, "until": until})
        row = await cursor.fetchone()
    assert row is not None
    return Extent(row[0], int(row[1]), _tokens(row[2]) if row[2] is not None else None)


_EXTENT_TO = (
    "SELECT COALESCE(max(sequence), 0), COALESCE(sum(octet_length(body)), 0),"
    " (SELECT body FROM transcript_entries WHERE run_id = %(run_id)s AND sequence <= %(last)s"
    " AND kind = 'usage' ORDER BY sequence DESC LIMIT 1)"
    " FROM transcript_entries WHERE run_id = %(run_id)s AND sequence <= %(last)s"
)


async def extent_to(pool: Pool, run_id: UUID, *, last: int) -> Extent:
    """Return the extent of the entries up to number `last`."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_EXTENT_TO, {"run_id": run_id, "last": last})
        row = await cursor.fetchone()
    assert row is not None
    return Extent(row[0], int(row[1]), _tokens(row[2]) if row[2] is not None else None)


WRITTEN_BEHIND = (
    "SELECT COALESCE(max(sequence), %s), COALESCE(sum(octet_length(body)), 0)"
    " FROM transcript_entries WHERE run_id = %s AND sequence > %s"
)


async def written_after(pool: Pool, run_id: UUID, *, after: int) -> Written:
    """Return the number of the last entry, and the bytes of the entries after number `after`."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(WRITTEN_BEHIND, [after, run_id, after])
        row = await cursor.fetchone()
    assert row is not None
    return Written(row[0], int(row[1]))


def _tokens(body: str) -> int:
    usage = orjson.loads(body)
    counts = (usage.get("inputTokens"), usage.get("outputTokens"))
    return sum(count for count in counts if isinstance(count, int))


@dataclass(frozen=True, slots=True)
class EncodedEntries:
    """Entries encoded as rows, not written yet; implements `UnwrittenEntries`."""

    kinds: tuple[str, ...]
    bodies: tuple[str, ...]
    ages: tuple[timedelta, ...]

    @classmethod
    def of(cls, entries: Sequence[TranscriptEntry]) -> Self:
        """Return the encoded entries."""
        return cls(
            tuple([entry.kind for entry in entries]),
            tuple([stored_body(entry) for entry in entries]),
            ages_of(entries),
        )

    def instants(self, recorded_at: datetime) -> list[datetime]:
        """Return the time of arrival of each entry."""
        return [recorded_at - age for age in self.ages]

    def lines(self, first: int, recorded_at: datetime) -> bytes:
        """Return the lines of the entries in the file, numbered from `first`."""
        entries = zip(self.instants(recorded_at), self.kinds, self.bodies, strict=True)
        return b"".join(
            transcript_line(RecordedEntry(number, instant, kind, orjson.loads(body)))
            for number, (instant, kind, body) in enumerate(entries, first)
        )


NO_AGE = timedelta(0)


def ages_of(entries: Sequence[TranscriptEntry]) -> tuple[timedelta, ...]:
    """Return how long ago each entry arrived."""
    now = asyncio.get_running_loop().time()
    return tuple(
        [
            timedelta(seconds=max(0.0, now - entry.arrived_at))
            if entry.arrived_at is not None
            else NO_AGE
            for entry in entries
        ]
    )


def stored_body(entry: TranscriptEntry) -> str:
    """Return the body of an entry as stored in its row."""
    # PostgreSQL text cannot hold NUL; JSON escapes it, and a program can print it.
    try:
        return orjson.dumps(entry.body, default=str).decode()
    except TypeError:
        # An unpaired surrogate, or an integer of more than 64 bits.
        return replace_unstorable(json.dumps(entry.body, default=str, ensure_ascii=False))
