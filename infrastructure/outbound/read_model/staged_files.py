"""Attachments staged in the database until they are written to a workspace."""

from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.projections.fold import FOREVER
from domain.run.lifecycle import PREPARING
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

# A run without a row is left alone: its projection is damaged.
DELETE_EXPIRED = (
    "WITH over AS (SELECT run_id FROM (SELECT DISTINCT run_id FROM staged_files) AS staged"
    " CROSS JOIN LATERAL (SELECT stage FROM runs WHERE runs.run_id = staged.run_id"
    f" AND to_position = {FOREVER} ORDER BY from_position DESC LIMIT 1) AS newest"
    " WHERE stage <> ALL(%s) LIMIT %s),"
    " gone AS (DELETE FROM staged_files USING over WHERE staged_files.run_id = over.run_id)"
    " SELECT count(*) FROM over"
)


class PostgresStagedFiles:
    """Staged files in PostgreSQL; implements `StagedFiles`."""

    def __init__(self, pool: AsyncConnectionPool[LogConnection]) -> None:
        self._pool = pool

    async def read(self, run_id: UUID) -> tuple[bytes, ...]:
        """Return the run's files in order."""
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(
                "SELECT body FROM staged_files WHERE run_id = %s ORDER BY ordinal",
                [run_id],
                binary=True,
            )
            return tuple(row[0] for row in await cursor.fetchall())

    async def drop(self, run_id: UUID) -> None:
        """Delete the run's files: they are written, or never will be."""
        async with borrow_connection(self._pool) as connection:
            await connection.execute("DELETE FROM staged_files WHERE run_id = %s", [run_id])

    async def sweep(self, limit: int) -> int:
        """Delete the files of up to `limit` runs that are no longer being prepared. Return the
        number of runs."""
        async with borrow_connection(self._pool) as connection:
            cursor = await connection.execute(DELETE_EXPIRED, [sorted(PREPARING), limit])
            row = await cursor.fetchone()
        assert row is not None
        return int(row[0])
