"""Leases and claims, timed by the database's clock."""

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

# Replaces the URL of a holder whose lease is closed. It is stored in the row itself, so that a
# renewal and a closing of the same lease wait for each other.
_CLOSED = "closed"
RENEW = (
    "INSERT INTO holders (holder, url, until)"
    " VALUES (%(holder)s, %(url)s, least(clock_timestamp() + make_interval(secs => %(seconds)s),"
    " %(not_after)s::timestamptz))"
    " ON CONFLICT (holder) DO UPDATE SET until = excluded.until, url = excluded.url"
    f" WHERE holders.url IS DISTINCT FROM '{_CLOSED}' RETURNING until > clock_timestamp()"
)
LEAVE = f"UPDATE holders SET until = clock_timestamp(), url = '{_CLOSED}' WHERE holder = %s"
# Also insert a closed row for a holder without one, so that it cannot create its own meanwhile.
CLOSE = (
    "INSERT INTO holders (holder, url, until)"
    f" SELECT holder, '{_CLOSED}', clock_timestamp()"
    " FROM unnest(%s::text[]) AS t (holder) ORDER BY holder"
    " ON CONFLICT (holder) DO UPDATE SET url = excluded.url"
    " WHERE holders.until <= clock_timestamp() RETURNING holder"
)
# Scan by due work and in its order: that index omits finished runs, which any other order would
# scan.
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


# The run that has waited longest comes first, at whatever depth.
UNCLAIMED = (
    "SELECT waiting.run_id FROM (SELECT run_id, queued_position FROM runs WHERE lane = %(lane)s"
    f" AND to_position = {FOREVER} AND stage = 'queued' AND holder IS NULL"
    " ORDER BY queued_position LIMIT %(limit)s) AS waiting"
    " JOIN events ON events.position = waiting.queued_position"
    " WHERE events.recorded_at <= statement_timestamp() - make_interval(secs => %(seconds)s)"
)


def _claim(kind: str, column: str, further: str = "") -> str:
    """Return the statement that claims unclaimed work of a kind, due according to a column."""
    return (
        "INSERT INTO work_claims (run_id, kind, holder, until)"
        f" SELECT runs.run_id, {kind}, %(holder)s,"
        " clock_timestamp() + make_interval(secs => %(seconds)s)"
        " FROM runs LEFT JOIN work_claims claims"
        f" ON claims.run_id = runs.run_id AND claims.kind = {kind}"
        # The time of the statement's start can be compared in an index: work due later is not read.
        f" WHERE runs.to_position = {FOREVER} AND runs.{column} <= statement_timestamp(){further}"
        " AND (claims.until IS NULL OR claims.until <= clock_timestamp())"
        # Concurrent claims lock the same rows in the same order: no deadlock.
        f" ORDER BY runs.{column}, runs.run_id LIMIT %(limit)s"
        " ON CONFLICT (run_id, kind) DO UPDATE SET holder = excluded.holder, until = excluded.until"
        " WHERE work_claims.until <= clock_timestamp() RETURNING run_id"
    )


_EFFECTS = "effects"
CLAIM_DUE = _claim("runs.due_kind", "due_at", " AND runs.due_kind = %(kind)s")
CLAIM_EFFECTS = _claim(f"'{_EFFECTS}'", "effects_at")
_WAIT = "wait"

# Claim only runs whose dependencies allow progress by the domain's rules, because a claimer repeats
# until nothing is left.
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

# Claims taken over by another holder are left alone.
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

# An append may be updating the row of the same run. Skip locked rows, so that neither waits for the
# other.
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
    """Leases and claims in PostgreSQL; implements `Coordination`."""

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
        """Extend a holder's lease.

        Args:
            holder: The holder of the lease.
            url: The holder's address, stored with the lease.
            lease_seconds: Length of the lease from now.
            not_after: Cap of the lease, if any.

        Returns:
            False if the lease was closed or `not_after` is past.
        """
        values = {
            "holder": holder,
            "url": url,
            "seconds": lease_seconds,
            "not_after": not_after,
        }
        rows = await self._fetch(RENEW, values)
        return bool(rows) and rows[0][0]

    async def close_leases(self, holders: Sequence[str]) -> frozenset[str]:
        """Close expired leases permanently. Return the holders whose lease is closed."""
        return frozenset(row[0] for row in await self._fetch(CLOSE, [list(holders)]))

    async def leave(self, holder: str) -> None:
        """End the lease now, and close it so that a renewal in progress fails. The row stays, so
        that the holder counts as gone, not as unknown."""
        await self._fetch(LEAVE, [holder])
        await self._fetch(
            "DELETE FROM holders WHERE until < clock_timestamp() - interval '1 day'", []
        )

    async def forget(self, holder: str) -> None:
        """Delete a lease under which nothing is held any more."""
        await self._fetch(FORGET_HOLDER, [holder])

    async def lost_runs(self, *, limit: int) -> LostRuns:
        """Return runs whose holder has no valid lease."""
        rows = await self._fetch(LOST, [limit])
        return LostRuns([LostRun(*row) for _, *row in rows if row[0] is not None], rows[0][0])

    async def held_runs(self, holder: str, *, limit: int) -> Sequence[LostRun]:
        """Return the runs recorded as held by this holder."""
        return [LostRun(*row) for row in await self._fetch(HELD, [holder, limit])]

    async def unclaimed_runs(self, *, seconds: float, limit: int) -> Sequence[UUID]:
        """Return external runs that have waited for an executor for at least `seconds`."""
        values = {"lane": EXTERNAL_LANE, "seconds": seconds, "limit": limit}
        return [row[0] for row in await self._fetch(UNCLAIMED, values)]

    async def claim(
        self, kind: ClaimKind, holder: str, *, limit: int, lease_seconds: float
    ) -> Sequence[UUID]:
        """Claim due work that no holder has, for `lease_seconds`. Return its runs."""
        values = {"holder": holder, "seconds": lease_seconds, "kind": kind, "limit": limit}
        return [row[0] for row in await self._fetch(_CLAIMS.get(kind, CLAIM_DUE), values)]

    async def prolong(
        self, claims: Sequence[ClaimKey], *, lease_seconds: float
    ) -> frozenset[ClaimKey]:
        """Extend the claims that no other holder has taken over. Return them."""
        values = {**_columns(claims), "seconds": lease_seconds}
        return frozenset(ClaimKey(*row) for row in await self._fetch(PROLONG, values))

    async def release(self, claims: Sequence[ClaimKey]) -> None:
        """Release claims."""
        await self._fetch(_RELEASE, _columns(claims))

    async def due_files(self, *, limit: int) -> Sequence[DueFile]:
        """Return transcript files that were not written in time, and postpone their next attempt
        with backoff."""
        return [DueFile(*row) for row in await self._fetch(DUE_FILES, [limit])]

    async def files_written(self, files: Sequence[DueFile]) -> Sequence[DueFile]:
        """Note that files are written. Return those whose run was archived in the meantime."""
        if not files:
            return ()
        values = [[file.run_id for file in files], [file.is_archived for file in files]]
        done = {row[0] for row in await self._fetch(_FILES_WRITTEN, values)}
        return [file for file in files if file.run_id not in done]

    async def forget_old_answers(self, *, days: int) -> int:
        """Delete stored answers older than this many days. Return their number."""
        forgotten = deleted = len(await self._fetch(FORGET_ANSWERS, [days]))
        while deleted == FORGET_ANSWERS_MAX:
            deleted = len(await self._fetch(FORGET_ANSWERS, [days]))
            forgotten += deleted
        return forgotten


def _columns(claims: Sequence[ClaimKey]) -> dict[str, object]:
    return {
        "kinds": [claim.kind for claim in claims],
        "run_ids": [claim.run_id for claim in claims],
        "holders": [claim.holder for claim in claims],
    }
