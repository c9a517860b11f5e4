"""Reads the rows of transcripts."""

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

# The first one that came too late ends it, whatever the clock said of those behind it.
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
    """Entries behind number `after`."""
    names = list(kinds) if kinds is not None else None
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_READ, [run_id, after, names, names, limit])
        rows: list[Any] = await cursor.fetchall()
    return [RecordedEntry(row[0], row[1], row[2], orjson.loads(row[3])) for row in rows]


# Each run by itself along the key.
_READ_OF_RUNS = (
    "SELECT t.run_id, one.* FROM unnest(%s::uuid[], %s::int[]) AS t (run_id, after)"
    " CROSS JOIN LATERAL (SELECT sequence, recorded_at, kind, body FROM transcript_entries"
    " WHERE transcript_entries.run_id = t.run_id AND sequence > t.after AND kind = ANY(%s)"
    " ORDER BY sequence LIMIT %s) AS one"
)


async def read_rows_of_runs(
    pool: Pool, afters: Mapping[UUID, int], *, limit: int, kinds: Sequence[str]
) -> Mapping[UUID, Sequence[RecordedEntry]]:
    """Return entries of several runs, of each those behind a number, at most `limit` of each."""
    found: dict[UUID, list[RecordedEntry]] = {}
    async with borrow_connection(pool) as connection:
        values = [list(afters), list(afters.values()), list(kinds), limit]
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
    """The last entries, in their order."""
    names = list(kinds) if kinds is not None else None
    async with borrow_connection(pool) as connection:
        values = [run_id, until, until, names, names, limit]
        rows: list[Any] = await (await connection.execute(_READ_LAST, values)).fetchall()
    found = [RecordedEntry(row[0], row[1], row[2], orjson.loads(row[3])) for row in rows]
    return found[::-1]


# The first one that came too late ends it, whatever the clock said of those behind it.
_COUNT_UNTIL = (
    "SELECT COALESCE((SELECT min(sequence) - 1 FROM transcript_entries"
    " WHERE run_id = %(run_id)s AND recorded_at > %(instant)s),"
    " (SELECT max(sequence) FROM transcript_entries WHERE run_id = %(run_id)s), 0)"
)


async def count_until(pool: Pool, run_id: UUID, instant: datetime) -> int:
    """How many of the first entries were written down by an instant."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_COUNT_UNTIL, {"run_id": run_id, "instant": instant})
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def pages(
    pool: Pool, run_id: UUID, *, until: int | None = None, size: int = PAGE_ENTRIES
) -> AsyncIterator[Sequence[RecordedEntry]]:
    """All entries of a run page by page, those up to number `until`."""
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
    """When the last entry of a run was written down."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_LAST_RECORDED_AT, [run_id])
        row = await cursor.fetchone()
    return row[0] if row is not None else None


async def extent_of(pool: Pool, run_id: UUID, *, until: datetime) -> Extent:
    """What was written down of a run by `until`."""
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
    """What was written down of a run up to entry number `last`."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(_EXTENT_TO, {"run_id": run_id, "last": last})
        row = await cursor.fetchone()
    assert row is not None
    return Extent(row[0], int(row[1]), _tokens(row[2]) if row[2] is not None else None)


WRITTEN_BEHIND = (
    "SELECT COALESCE(max(sequence), %s), COALESCE(sum(octet_length(body)), 0)"
    " FROM transcript_entries WHERE run_id = %s AND sequence > %s"
)


async def written_behind(pool: Pool, run_id: UUID, *, after: int) -> Written:
    """The last entry, and the bytes of those behind number `after`."""
    async with borrow_connection(pool) as connection:
        cursor = await connection.execute(WRITTEN_BEHIND, [after, run_id, after])
        row = await cursor.fetchone()
    assert row is not None
    return Written(row[0], int(row[1]))


def _tokens(body: str) -> int:
    usage = orjson.loads(body)
    counts = (usage.get("inputTokens"), usage.get("outputTokens"))
    return sum(one for one in counts if isinstance(one, int))


@dataclass(frozen=True, slots=True)
class EncodedEntries:
    """Implements `UnwrittenEntries`."""

    kinds: tuple[str, ...]
    bodies: tuple[str, ...]
    ages: tuple[timedelta, ...]

    @classmethod
    def of(cls, entries: Sequence[TranscriptEntry]) -> Self:
        """As their rows will have them."""
        return cls(
            tuple([one.kind for one in entries]),
            tuple([stored_body(one) for one in entries]),
            ages_of(entries),
        )

    def instants(self, recorded_at: datetime) -> list[datetime]:
        """When each arrived."""
        return [recorded_at - age for age in self.ages]

    def lines(self, first: int, recorded_at: datetime) -> bytes:
        """The lines of the file."""
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
            timedelta(seconds=max(0.0, now - one.arrived_at))
            if one.arrived_at is not None
            else NO_AGE
            for one in entries
        ]
    )


def stored_body(entry: TranscriptEntry) -> str:
    """The body of an entry as its row has it."""
    # PostgreSQL text cannot hold NUL, and JSON may carry it only escaped: a program can print it.
    try:
        return orjson.dumps(entry.body, default=str).decode()
    except TypeError:
        # Half of a surrogate pair, or a number of more than 64 bits.
        return replace_unstorable(json.dumps(entry.body, default=str, ensure_ascii=False))
