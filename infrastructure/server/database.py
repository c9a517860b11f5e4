"""The database of a server: embedded by default, or any other by URL."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg_pool import AsyncConnectionPool

from infrastructure.contract.errors import UserError
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.connections import (
    ANSWER_SECONDS_MAX,
    COORDINATION_CONNECTIONS_MAX,
    LIMITS,
    LOCK_TIMEOUT_MS,
    PLANNING,
    READING_CONNECTIONS_MAX,
    UNAVAILABLE,
    LogConnection,
    Silences,
    crowding_advice,
    open_connection,
    open_pool,
    session_limits,
)
from infrastructure.outbound.log.schema.revision import (
    FoundDatabase,
    inspect_database,
    newest_revision,
    require_known_revision,
    require_utf8,
)
from infrastructure.server.migration import first_line, migrate_in_process


@dataclass(slots=True)
class Database:
    """Location of the log.

    `ensure_running` restarts an embedded server. It is called after a connection failed, before the
    next attempt.
    """

    conninfo: str
    ensure_running: Callable[[], None]
    close: Callable[[], None]
    is_embedded: bool = False


def open_database(url: str | None, embedded_home: Path) -> Database:
    """Return the database at a URL, or join, start and migrate the embedded one.

    Raises:
        UserError: The database cannot be used, or has the schema of another release. The message
            says what to do.
    """
    if url is not None:
        _require_ready(url)
        return Database(url, _do_nothing, _do_nothing)
    try:
        server = EmbeddedPostgres.start(embedded_home)
    except EmbeddedPostgresError as error:
        raise UserError(str(error)) from error
    try:
        revision = _inspect(server.conninfo, "the embedded database cannot be used").revision
        if revision != newest_revision():
            migrate_in_process(server.conninfo, "the embedded database cannot be used")
    except BaseException:
        server.close()
        raise
    return Database(server.conninfo, server.ensure_running, server.close, is_embedded=True)


def migrate_database(url: str | None, embedded_home: Path) -> str:
    """Migrate the schema to this release. Return a sentence about it."""
    if url is None:
        database = open_database(None, embedded_home)
        database.close()
        return f"the embedded database is at revision {newest_revision()}"
    failure = "the database cannot be migrated"
    require_utf8(_inspect(url, failure).encoding)
    before, after = migrate_in_process(url, failure)
    if before == after:
        return f"the database was already at revision {after}"
    return f"the database was migrated from {before or 'empty'} to revision {after}"


def _inspect(url: str, failure: str, advice: str = "") -> FoundDatabase:
    """Inspect a database. Refuse a schema revision that this release does not know."""
    try:
        database = inspect_database(url)
    except (psycopg.Error, ValueError) as error:
        if "no password supplied" in str(error):
            advice = "; set PGPASSWORD, or use a .pgpass file"
        reason = crowding_advice(error) or f"{first_line(error)}{advice}"
        raise UserError(f"{failure}: {reason}") from error
    require_known_revision(database.revision)
    return database


@contextlib.contextmanager
def name_unavailable_database() -> Iterator[None]:
    """Turn errors of a database that is away or out of connections into `UserError`."""
    try:
        yield
    except UNAVAILABLE as error:
        raise UserError(
            f"the database cannot be used: {crowding_advice(error) or first_line(error)}"
        ) from error


def _require_ready(url: str) -> None:
    database = _inspect(url, "the database cannot be reached", "; check --database-url")
    require_utf8(database.encoding)
    newest = newest_revision()
    if database.revision != newest:
        raise UserError(
            f"the database is at revision {database.revision or 'none'} and this release needs"
            f" {newest}; run `spawnlog migrate` with the same --database-url"
        )


def _do_nothing() -> None:
    """Do nothing: the server does not start or stop an external database."""


POOL_WAIT_SECONDS = 10.0
POOL_SETTINGS = f"{LIMITS}; {PLANNING}"
DIRECT_ANSWER_SECONDS_MAX = 12.0
COORDINATION_ANSWER_SECONDS_MIN = 2.0
COORDINATION_ANSWERS_PER_LEASE = 3
"""A lease must be renewable on another connection before it expires."""
STATEMENT_SHARE = 0.8
"""Share of the answer time that a statement may take, so that a slow database ends it first."""
LOCK_SHARE = 0.8
"""Share of the statement time that a lock may take, so that the error names the lock."""


def _limits_within(answer_seconds_max: float) -> str:
    statement_ms = round(answer_seconds_max * STATEMENT_SHARE * 1000)
    lock_ms = min(LOCK_TIMEOUT_MS, round(statement_ms * LOCK_SHARE))
    return session_limits(lock_ms=lock_ms, statement_ms=statement_ms)


async def check_alive(connection: LogConnection) -> None:
    """Raise `OperationalError` if the connection is closed or doubtful.

    A connection is doubtful after another one waited for the server in vain. Only the socket is
    checked, without a round trip. It is read twice: a last message may precede the end.
    """
    if connection.is_doubtful:
        await connection.close()
        raise psycopg.OperationalError("the database may no longer be reachable")
    for _ in range(2):
        connection.pgconn.consume_input()


class DatabaseConnector:
    """Factory of connections that restarts an embedded server that is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._silences = Silences()
        self.on_connection: Callable[[], None] = lambda: None

    @property
    def conninfo(self) -> str:
        """Return the database's connection string, for other processes. It may hold a password."""
        return self._database.conninfo

    async def connect(self) -> LogConnection:
        """Return a dedicated connection, for the writer or the tail."""
        try:
            return await self._open()
        except psycopg.OperationalError:
            try:
                await asyncio.to_thread(self._database.ensure_running)
            except EmbeddedPostgresError as error:
                raise psycopg.OperationalError(str(error)) from error
            return await self._open()

    async def _open(self) -> LogConnection:
        return await open_connection(
            self._database.conninfo,
            application="server",
            settings=_limits_within(DIRECT_ANSWER_SECONDS_MAX),
            answer_seconds_max=DIRECT_ANSWER_SECONDS_MAX,
            silences=self._silences,
        )

    async def reading(self) -> AsyncConnectionPool[LogConnection]:
        """Return an open pool of connections for reads."""
        return await self._pool("reads", least=2, most=READING_CONNECTIONS_MAX)

    async def coordinating(self, *, lease_seconds: float) -> AsyncConnectionPool[LogConnection]:
        """Return an open pool for leases and claims, which reads cannot exhaust."""
        answer_seconds_max = max(
            COORDINATION_ANSWER_SECONDS_MIN,
            min(lease_seconds / COORDINATION_ANSWERS_PER_LEASE, ANSWER_SECONDS_MAX),
        )
        return await self._pool(
            "coordination",
            least=1,
            most=COORDINATION_CONNECTIONS_MAX,
            settings=f"{_limits_within(answer_seconds_max)}; {PLANNING}",
            answer_seconds_max=answer_seconds_max,
        )

    def _connected(self) -> None:
        # Looked up at each call: it is set after the pool was opened.
        self.on_connection()

    async def _pool(
        self,
        purpose: str,
        *,
        least: int,
        most: int,
        settings: str = POOL_SETTINGS,
        answer_seconds_max: float = ANSWER_SECONDS_MAX,
    ) -> AsyncConnectionPool[LogConnection]:
        return await open_pool(
            self._database.conninfo,
            application=purpose,
            least=least,
            most=most,
            wait_seconds=POOL_WAIT_SECONDS,
            settings=settings,
            answer_seconds_max=answer_seconds_max,
            silences=self._silences,
            on_connection=self._connected,
            check=check_alive,
        )
