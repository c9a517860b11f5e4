"""Leases and claims, on the database's clock."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.coordination.coordination import (
    ClaimKey,
    ClaimKind,
    DueFile,
    LostRun,
    LostRuns,
)
from application.projections.fold import FOREVER
from domain.run.facts import EXTERNAL_LANE
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

# In the place of a holder's URL when its lease was closed. It is in the row itself, because a
# renewal and a closing of the same lease wait for each other there.
_CLOSED = "closed"
RENEW = (
    "INSERT INTO holders (holder, url, until)"
    " VALUES (%(holder)s, %(url)s, least(clock_timestamp() + make_interval(secs => %(seconds)s),"
    " %(not_after)s::timestamptz))"
    " ON CONFLICT (holder) DO UPDATE SET until = excluded.until, url = excluded.url"
    f" WHERE holders.url IS DISTINCT FROM '{_CLOSED}' RETURNING until > clock_timestamp()"
)
LEAVE = f"UPDATE holders SET until = clock_timestamp(), url = '{_CLOSED}' WHERE holder = %s"
# Also of a holder without a row, so that it does not write one meanwhile.
CLOSE = (
    "INSERT INTO holders (holder, url, until)"
    f" SELECT holder, '{_CLOSED}', clock_timestamp()"
    " FROM unnest(%s::text[]) AS t (holder) ORDER BY holder"
    " ON CONFLICT (holder) DO UPDATE SET url = excluded.url"
    " WHERE holders.until <= clock_timestamp() RETURNING holder"
)
# By what is due, in its order: whatever is over, and in any other order that would be walked
# through, is not in that index.
_IN_HANDS = f"runs.due_kind IN ('prepare', 'run') AND runs.to_position = {FOREVER}"
_BY_DUE = "ORDER BY runs.due_kind, runs.due_at LIMIT %s"
LOST = (
    "SELECT clock_timestamp(), lost.* FROM (SELECT) AS once LEFT JOIN LATERAL ("
    "SELECT runs.run_id, runs.stage, runs.holder, runs.epoch, holders.holder IS NULL,"
    " holders.until FROM runs"
    f" LEFT JOIN holders ON holders.holder = runs.holder WHERE {_IN_HANDS}"
    f" AND (holders.until IS NULL OR holders.until <= clock_timestamp()) {_BY_DUE}"
    ") AS lost ON true"
)
HELD = (
    "SELECT run_id, stage, holder, epoch, false FROM runs"
    f" WHERE holder = %s AND {_IN_HANDS} {_BY_DUE}"
)


# Whoever waits longest stands in front, at whatever depth.
UNCLAIMED = (
    "SELECT waiting.run_id FROM (SELECT run_id, queued_position FROM runs WHERE lane = %(lane)s"
    f" AND to_position = {FOREVER} AND stage = 'queued' AND holder IS NULL"
    " ORDER BY queued_position LIMIT %(limit)s) AS waiting"
    " JOIN events ON events.position = waiting.queued_position"
    " WHERE events.recorded_at <= statement_timestamp() - make_interval(secs => %(seconds)s)"
)


def _claim(kind: str, column: str, further: str = "") -> str:
    """Take the work of a kind that is due by a column, and that nobody has."""
    return (
        "INSERT INTO work_claims (run_id, kind, holder, until)"
        f" SELECT runs.run_id, {kind}, %(holder)s,"
        " clock_timestamp() + make_interval(secs => %(seconds)s)"
        " FROM runs LEFT JOIN work_claims claims"
        f" ON claims.run_id = runs.run_id AND claims.kind = {kind}"
        # Of the statement's start, which an index can be asked for: what is due later is not read.
        f" WHERE runs.to_position = {FOREVER} AND runs.{column} <= statement_timestamp(){further}"
        " AND (claims.until IS NULL OR claims.until <= clock_timestamp())"
        # Two that claim at once go through the same rows in the same order: no deadlock.
        f" ORDER BY runs.{column}, runs.run_id LIMIT %(limit)s"
        " ON CONFLICT (run_id, kind) DO UPDATE SET holder = excluded.holder, until = excluded.until"
        " WHERE work_claims.until <= clock_timestamp() RETURNING run_id"
    )


_EFFECTS = "effects"
CLAIM_DUE = _claim("runs.due_kind", "due_at", " AND runs.due_kind = %(kind)s")
CLAIM_EFFECTS = _claim(f"'{_EFFECTS}'", "effects_at")
_WAIT = "wait"

# Those alone for which something can be done, as the domain judges what they depend on: who claims
# goes on until there are none.
CLAIM_WAITS = _claim(
    "runs.due_kind",
    "due_at",
    " AND runs.due_kind = %(kind)s AND EXISTS (SELECT 1 FROM"
    " jsonb_array_elements_text(runs.state::jsonb -> 'waitsFor') AS awaited (run_id)"
    " CROSS JOIN LATERAL (SELECT stage, outcome, due_kind FROM runs AS one"
    f" WHERE one.run_id = awaited.run_id::uuid AND one.to_position = {FOREVER}"
    " ORDER BY one.from_position DESC LIMIT 1) AS target"
    " WHERE target.stage IN ('announced', 'archived', 'refused')"
    " OR (target.stage = 'ended' AND (target.due_kind = 'announce' OR (target.outcome <> 'success'"
    " AND EXISTS (SELECT 1 FROM jsonb_array_elements(runs.state::jsonb -> 'dependencies') AS wish"
    " WHERE wish ->> 'runId' = awaited.run_id"
    " AND COALESCE(wish ->> 'require', 'success') = 'success')))))",
)
_CLAIMS = {_EFFECTS: CLAIM_EFFECTS, _WAIT: CLAIM_WAITS}

# What is somebody else's by now is left alone.
_MINE = (
    " unnest(%(kinds)s::text[], %(run_ids)s::uuid[], %(holders)s::text[])"
    " AS mine (kind, run_id, holder)"
    " WHERE work_claims.run_id = mine.run_id AND work_claims.kind = mine.kind"
    " AND work_claims.holder = mine.holder"
)
PROLONG = (
    "UPDATE work_claims SET until = clock_timestamp() + make_interval(secs => %(seconds)s) FROM"
    f"{_MINE} RETURNING work_claims.kind, work_claims.run_id, work_claims.holder"
)
FORGET_HOLDER = "DELETE FROM holders WHERE holder = %s"
FORGET_ANSWERS_MAX = 1_000
FORGET_ANSWERS = (
    "DELETE FROM idempotency WHERE ctid = ANY(ARRAY(SELECT ctid FROM idempotency"
    " WHERE created_at < statement_timestamp() - make_interval(days => %s) AND kind IS NOT NULL"
    f" ORDER BY created_at LIMIT {FORGET_ANSWERS_MAX})) RETURNING 1"
)
_RELEASE = f"DELETE FROM work_claims USING{_MINE}"

# An append may be about to note more of the same run. Nobody waits for it, so that nobody waits for
# each other.
DUE_FILES = (
    "UPDATE transcript_files SET attempts = least(attempts + 1, 20), due_at = statement_timestamp()"
    " + make_interval(secs => least(3600, 5 * 2 ^ attempts)) WHERE run_id IN"
    " (SELECT run_id FROM transcript_files WHERE due_at <= statement_timestamp()"
    " ORDER BY due_at LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING run_id, is_archived"
)
_FILES_WRITTEN = (
    "DELETE FROM transcript_files WHERE run_id IN (SELECT due.run_id FROM transcript_files due"
    " JOIN unnest(%s::uuid[], %s::boolean[]) AS written (run_id, is_archived)"
    " ON due.run_id = written.run_id AND due.is_archived = written.is_archived"
    " FOR UPDATE OF due SKIP LOCKED) RETURNING run_id"
)


class PostgresCoordination:
    """Implements `Coordination`."""

    def __init__(self, pool: AsyncConnectionPool[LogConnection]) -> None:
        self._pool = pool

    async def _fetch(self, sql: str, values: Any) -> list[Any]:
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(sql, values)
            return await cursor.fetchall() if cursor.description else []

    async def renew(
        self,
        holder: str,
        *,
        url: str | None,
        lease_seconds: float,
        not_after: datetime | None = None,
    ) -> bool:
        """Prolong a holder's lease. Return False if it was closed, or `not_after` is past."""
        values = {
            "holder": holder,
            "url": url,
            "seconds": lease_seconds,
            "not_after": not_after,
        }
        rows = await self._fetch(RENEW, values)
        return bool(rows) and rows[0][0]

    async def close_leases(self, holders: Sequence[str]) -> frozenset[str]:
        """Close expired leases for good."""
        return frozenset(row[0] for row in await self._fetch(CLOSE, [list(holders)]))

    async def leave(self, holder: str) -> None:
        """Let the lease expire now, and close it against a renewal that is still under way. The row
        stays, so that the holder counts as gone, not as unknown."""
        await self._fetch(LEAVE, [holder])
        await self._fetch(
            "DELETE FROM holders WHERE until < clock_timestamp() - interval '1 day'", []
        )

    async def forget(self, holder: str) -> None:
        """Remove a lease under whose name nothing is held any more."""
        await self._fetch(FORGET_HOLDER, [holder])

    async def lost_runs(self, *, limit: int) -> LostRuns:
        """Runs held by somebody without a valid lease."""
        rows = await self._fetch(LOST, [limit])
        return LostRuns([LostRun(*row) for _, *row in rows if row[0] is not None], rows[0][0])

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        """Runs that are recorded as held by this holder."""
        return [LostRun(*row) for row in await self._fetch(HELD, [holder, limit])]

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        """Runs that wait for an executor outside for so long."""
        values = {"lane": EXTERNAL_LANE, "seconds": seconds, "limit": limit}
        return [row[0] for row in await self._fetch(UNCLAIMED, values)]

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Take due work that nobody has."""
        values = {"holder": holder, "seconds": lease_seconds, "kind": kind, "limit": limit}
        return [row[0] for row in await self._fetch(_CLAIMS.get(kind, CLAIM_DUE), values)]

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        """Prolong the claims that nobody else has taken."""
        values = {**_columns(claims), "seconds": lease_seconds}
        return frozenset(ClaimKey(*row) for row in await self._fetch(PROLONG, values))

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Give claims up."""
        await self._fetch(_RELEASE, _columns(claims))

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        """Files of transcripts that nobody has written in time."""
        return [DueFile(*row) for row in await self._fetch(DUE_FILES, [limit])]

    async def files_written(self, files: Sequence[DueFile]) -> Sequence[DueFile]:
        """They are written; gives those whose run was archived since."""
        if not files:
            return ()
        values = [[one.run_id for one in files], [one.is_archived for one in files]]
        done = {row[0] for row in await self._fetch(_FILES_WRITTEN, values)}
        return [one for one in files if one.run_id not in done]

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete idempotency records older than that."""
        forgotten = deleted = len(await self._fetch(FORGET_ANSWERS, [days]))
        while deleted == FORGET_ANSWERS_MAX:
            deleted = len(await self._fetch(FORGET_ANSWERS, [days]))
            forgotten += deleted
        return forgotten


def _columns(claims: Sequence[ClaimKey]) -> dict[str, object]:
    return {
        "kinds": [one.kind for one in claims],
        "run_ids": [one.run_id for one in claims],
        "holders": [one.holder for one in claims],
    }
