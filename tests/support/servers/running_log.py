"""Running log on a database, as one server process has it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg_pool import AsyncConnectionPool
from uuid_utils.compat import uuid7

from application.coordination.coordination import Coordination
from application.log.envelope import RecordedEvent
from application.log.texts import Contents
from application.ports.files import StagedFiles
from application.ports.registry import Registry
from application.ports.transcripts import Transcripts
from infrastructure.outbound.log.postgres_log import PostgresLog
from infrastructure.outbound.log.read.tail import LogTail
from infrastructure.outbound.log.schema import connections
from infrastructure.outbound.log.schema.append_lock import LOCK_CLASS
from infrastructure.outbound.log.schema.connections import Connect, LogConnection, open_connection
from infrastructure.outbound.read_model.contents import PostgresContents
from infrastructure.outbound.read_model.coordination import PostgresCoordination
from infrastructure.outbound.read_model.registry import PostgresRegistry
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.transcripts.transcripts import StoredTranscripts

EVENTS_MAX = 100_000
POOL_CONNECTIONS_MAX = 4
POOL_WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class RunningLog:
    """A log, its readers, and its database."""

    url: str
    log: PostgresLog
    pool: AsyncConnectionPool[LogConnection]

    @property
    def tail(self) -> LogTail:
        """Return the tail of this process."""
        return self.log.tail

    async def ask(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query, bypassing the log."""
        async with self.pool.connection() as connection:
            cursor = await connection.execute(query, values or None)
            return await cursor.fetchall() if cursor.description else []

    async def erase(self, session_id: UUID) -> None:
        """Delete the texts and the key of a session."""
        for table in ("contents", "content_keys"):
            await self.ask(f"DELETE FROM {table} WHERE session_id = %s", session_id)

    async def events(self) -> Sequence[RecordedEvent]:
        """Return all recorded events; assert that positions have no gaps."""
        events = await self.log.read(limit=EVENTS_MAX)
        positions = [recorded.envelope.position for recorded in events]
        assert positions == list(range(1, len(events) + 1))
        assert await self.log.head() == len(events)
        return events

    async def types(self) -> list[str]:
        """Return the types of all events, in order."""
        return [recorded.envelope.type for recorded in await self.events()]

    async def commits(self) -> int:
        """Return the number of transactions that recorded all of it."""
        return int((await self.ask("SELECT count(*) FROM commits"))[0][0])

    def other(self) -> AbstractAsyncContextManager["RunningLog"]:
        """Return the same log as another process has it."""
        return running_on(self.url)

    def registry(self) -> Registry:
        """Return a registry on the database."""
        return PostgresRegistry(self.pool)

    def contents(self) -> Contents:
        """Return the texts of the database."""
        return PostgresContents(self.pool)

    def coordination(self) -> Coordination:
        """Return the leases and claims of the database."""
        return PostgresCoordination(self.pool)

    def staged(self) -> StagedFiles:
        """Return the staged files of the database."""
        return PostgresStagedFiles(self.pool)

    def transcripts(self, folder: Path) -> Transcripts:
        """Return the transcripts, with files in this folder."""
        return StoredTranscripts(self.pool, folder)

    async def backends(self, query: str) -> list[int]:
        """Return the backends of this database whose last query was like this one."""
        rows = await self.ask(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'spawnlog test' AND query LIKE %s",
            query,
        )
        return [row[0] for row in rows]

    async def end(self, pid: int) -> bool:
        """End a backend as an administrator would; False when it is not there any more."""
        return bool((await self.ask("SELECT pg_terminate_backend(%s)", pid))[0][0])

    async def writers(self) -> list[int]:
        """Return the backends that hold the append lock or wait for it."""
        rows = await self.ask(
            "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database"
            " WHERE datname = current_database() AND locktype = 'advisory' AND classid = %s",
            LOCK_CLASS,
        )
        return [row[0] for row in rows]


async def identity_of(connection: LogConnection) -> tuple[UUID, str]:
    """Return the log's id and its schema."""
    cursor = await connection.execute("SELECT log_id, current_schema() FROM log_head")
    row = await cursor.fetchone()
    assert row is not None
    return row[0], row[1]


@asynccontextmanager
async def open_pool(url: str) -> AsyncIterator[AsyncConnectionPool[LogConnection]]:
    """Yield a pool for reads, set up as in a server."""
    pool = await connections.open_pool(
        url,
        application="reads",
        least=1,
        most=POOL_CONNECTIONS_MAX,
        wait_seconds=POOL_WAIT_SECONDS,
        settings=connections.LIMITS,
    )
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def running_on(url: str, *, connect: Connect | None = None) -> AsyncIterator[RunningLog]:
    """Yield a log that writes and follows until the end of the block."""

    async def plainly() -> LogConnection:
        return await open_connection(url, application="test")

    async with open_pool(url) as pool:
        async with pool.connection() as connection:
            log_id, schema = await identity_of(connection)
        log = PostgresLog(connect or plainly, pool, log_id=log_id, schema=schema, new_id=uuid7)
        await log.start()
        try:
            yield RunningLog(url, log, pool)
        finally:
            await log.close()
