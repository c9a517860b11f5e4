"""Database connections with the limits and settings that the log needs."""

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from application.log.event_log import LogUnavailableError
from infrastructure.outbound.log.codec.binary import BinaryColumn, ColumnDumper
from infrastructure.outbound.log.schema.session import session_statement

CONNECT_TIMEOUT_SECONDS = 10
CONNECT_SECONDS_MAX = 30.0
"""For all addresses of the URL together, including their look-up."""
LOCK_TIMEOUT_MS = 10_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000
KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
"""How long a silent connection to a database on another machine is trusted."""
ANSWER_SECONDS_MAX = 35.0
"""How long the client waits for an answer. It exceeds `STATEMENT_TIMEOUT_MS`: a slow database ends
the statement itself, and a silent one is given up."""
WHOLE_TABLE_ANSWER_SECONDS_MAX = 6 * 3600.0


def session_limits(
    *,
    lock_ms: int = LOCK_TIMEOUT_MS,
    statement_ms: int = STATEMENT_TIMEOUT_MS,
    idle_ms: int = IDLE_IN_TRANSACTION_TIMEOUT_MS,
) -> str:
    """Return the SQL that limits a session's waits, in milliseconds; 0 means no limit.

    `lock_ms` must be less than `statement_ms`, so that the error of a lock wait names the lock.
    """
    return (
        f"SET lock_timeout = {lock_ms}; SET statement_timeout = {statement_ms};"
        f" SET idle_in_transaction_session_timeout = {idle_ms}"
    )


LIMITS = session_limits()
CLIENT_CHECK_MS = 2_000
# PostgreSQL rejects the setting on systems that cannot detect a lost client.
CLIENT_CHECK = (
    f"DO $$ BEGIN SET client_connection_check_interval = {CLIENT_CHECK_MS};"
    " EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$"
)
"""SQL that makes a statement end within `CLIENT_CHECK_MS` after its client is gone, however long
the statement may run."""
STATEMENTS_WITHOUT_LIMIT = f"SET statement_timeout = 0; {CLIENT_CHECK}"
"""SQL for work on whole tables."""
NO_LIMITS = f"{session_limits(lock_ms=0, statement_ms=0, idle_ms=0)}; {STATEMENTS_WITHOUT_LIMIT}"
"""SQL for migrations."""


# Every query of a server uses an index. A plan made while the tables were small would scan them
# whole, and continue to when they are large.
PLANNING = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"

# The queries and statements of an append are always the same, by keys and their indexes, and
# planning one costs the database as much as executing it. Readers of pages keep custom plans: the
# best plan depends on the length of the page.
WRITER_PLANNING = f"{PLANNING}; SET plan_cache_mode = force_generic_plan"


# A primary that became a standby, or that an operator has made read-only: it answers, and stays
# that way.
_READ_ONLY = psycopg.errors.ReadOnlySqlTransaction
# PostgreSQL reports it with the SQLSTATE of a missing privilege.
_READ_ONLY_DISK = "Read-only file system"
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, _READ_ONLY)
"""Errors of the database itself that may be gone in a moment, whatever the query."""


READING_CONNECTIONS_MAX = 12

# One for each kind of background work, so that none waits for another.
COORDINATION_CONNECTIONS_MAX = 8
DIRECT_CONNECTIONS_MAX = 3
"""For the writer, the tail and the listener."""
SERVER_CONNECTIONS_MAX = (
    READING_CONNECTIONS_MAX + COORDINATION_CONNECTIONS_MAX + DIRECT_CONNECTIONS_MAX
)
# libpq keeps no SQLSTATE of a failed connection attempt; these are its messages.
_CROWDED = ("too many clients", "remaining connection slots", "too many connections")


def crowding_advice(error: BaseException) -> str | None:
    """Return advice if the database has no free connection; None for another error."""
    if not any(words in str(error) for words in _CROWDED):
        return None
    return (
        "all its connections are taken (too many connections); each server of the log holds up to"
        f" {SERVER_CONNECTIONS_MAX}, and a command a few more: raise max_connections of PostgreSQL,"
        " or the connection limit of the role or database"
    )


def refusal_to_write(error: BaseException) -> str | None:
    """Return the reason why a database that answers records nothing, with advice; None for another
    error."""
    if isinstance(error, _READ_ONLY):
        return "the database is read-only; retry when it accepts writes"
    if isinstance(error, psycopg.errors.DiskFull):
        return "the disk of the database is full; free some space, then retry"
    if isinstance(error, psycopg.errors.InsufficientPrivilege) and _READ_ONLY_DISK in str(error):
        return "the disk of the database is read-only; check it, mount it read-write, then restart"
    return None


_WAIT_INTERVAL_SECONDS = 0.1
RV = TypeVar("RV")


class DatabaseTimeoutError(psycopg.OperationalError):
    """The database did not answer in time, so the connection was closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the database did not answer within {seconds:g} s")


class Silences:
    """Time of the last timeout among the connections of a process, on the monotonic clock.

    A NAT that forgot one connection has forgotten the others too, so those without an answer since
    are doubtful.
    """

    def __init__(self) -> None:
        self.noted_at = -math.inf


class LogConnection(psycopg.AsyncConnection[TupleRow]):
    """Connection that waits at most `answer_seconds_max` for each answer.

    After a timeout it is closed, because the fate of the statement is unknown. A peer that
    acknowledges packets but never answers passes every check of the operating system.
    """

    answer_seconds_max = ANSWER_SECONDS_MAX
    heard_at = -math.inf
    silences = Silences()

    @property
    def is_doubtful(self) -> bool:
        """Return True if another connection timed out since this one last got an answer."""
        return self.heard_at < self.silences.noted_at

    async def wait(
        self,
        gen: PQGen[RV],
        interval: float = _WAIT_INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """Wait for an answer. If `timeout` is given, the caller has a limit of its own.

        Raises:
            DatabaseTimeoutError: No answer within `answer_seconds_max`.
        """
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            answer = await super().wait(gen, interval, self.answer_seconds_max)
        except psycopg.OperationalError as error:
            if time.monotonic() - began < self.answer_seconds_max:
                raise
            self.pgconn.finish()
            self.silences.noted_at = time.monotonic()
            raise DatabaseTimeoutError(self.answer_seconds_max) from error
        self.heard_at = time.monotonic()
        return answer

    async def copy_out(self, statement: str) -> list[bytes]:
        """Return the rows of a binary COPY, each beginning with its number of columns."""
        async with self.lock:
            return await self.wait(_copied_rows(self.pgconn, statement))


class SyncLogConnection(psycopg.Connection[TupleRow]):
    """Blocking connection with the same limit."""

    answer_seconds_max = ANSWER_SECONDS_MAX

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _WAIT_INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """Wait for an answer. If `timeout` is given, the caller has a limit of its own.

        Raises:
            DatabaseTimeoutError: No answer within `answer_seconds_max`.
        """
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_seconds_max)
        except psycopg.OperationalError as error:
            if time.monotonic() - began < self.answer_seconds_max:
                raise
            self.pgconn.finish()
            raise DatabaseTimeoutError(self.answer_seconds_max) from error

    def copy_out(self, statement: str) -> list[bytes]:
        """Return the rows of a binary COPY, each beginning with its number of columns."""
        with self.lock:
            return self.wait(_copied_rows(self.pgconn, statement))


_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"


def _copied_rows(connection: PGconn, statement: str) -> PQGen[list[bytes]]:
    """Return the rows that a COPY statement sends, outside a pipeline.

    The driver's `Copy` would wait for each row separately, which takes as long as hashing it.
    """
    connection.send_query(statement.encode())
    (result,) = yield from generators.execute(connection)
    if result.status != ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    copied: list[bytes] = []
    while isinstance(data := (yield from generators.copy_from(connection)), memoryview):
        copied.append(data.tobytes())
    if copied[0].startswith(_COPY_SIGNATURE):
        extension = int.from_bytes(copied[0][15:19], "big")
        copied[0] = copied[0][19 + extension :]
    # The end of the data is marked by a row of -1 columns.
    return [row for row in copied if len(row) > 2]


Connect = Callable[[], Awaitable[LogConnection]]


@contextlib.asynccontextmanager
async def borrow_connection(
    pool: AsyncConnectionPool[LogConnection],
) -> AsyncIterator[LogConnection]:
    """Yield a pooled connection.

    Raises:
        LogUnavailableError: The database is unavailable or accepts no writes.
    """
    try:
        async with pool.connection() as connection:
            yield connection
    except (psycopg.errors.InsufficientPrivilege, *UNAVAILABLE) as error:
        refusal = refusal_to_write(error)
        if refusal is None and not isinstance(error, UNAVAILABLE):
            raise
        why = refusal or "the database is unavailable; retry in a moment"
        raise LogUnavailableError(why) from error


def connection_arguments(application: str) -> dict[str, Any]:
    """Return the parameters of every new connection; they override those of the URL."""
    return {
        "autocommit": True,
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": f"spawnlog {application}",
        # FIXED has it too; here it covers errors that occur before FIXED is sent.
        "client_encoding": "UTF8",
        **KEEPALIVE,
    }


async def set_up_session(connection: LogConnection, settings: str) -> None:
    """Apply the fixed settings to a new connection.

    libpq's `options` would not do: they replace the options in the URL, such as the schema, and
    poolers reject them.
    """
    connection.adapters.register_dumper(BinaryColumn, ColumnDumper)
    await connection.execute(session_statement(connection.info.server_version, settings))


async def open_connection(
    conninfo: str,
    *,
    application: str,
    settings: str = LIMITS,
    answer_seconds_max: float = ANSWER_SECONDS_MAX,
    silences: Silences | None = None,
) -> LogConnection:
    """Open a connection outside any transaction, with limits on its waits.

    Args:
        conninfo: The URL of the database.
        application: Purpose of the connection, shown in `pg_stat_activity`.
        settings: SQL for limits and planner settings, sent in the round trip that sets up the
            session.
        answer_seconds_max: How long to wait for an answer; must exceed the longest statement.
        silences: Shared by the connections of a process to one database.

    Raises:
        DatabaseTimeoutError: No connection within `CONNECT_SECONDS_MAX`.
    """
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            connection = await LogConnection.connect(conninfo, **connection_arguments(application))
    except TimeoutError as silent:
        raise DatabaseTimeoutError(CONNECT_SECONDS_MAX) from silent
    connection.answer_seconds_max = answer_seconds_max
    connection.silences = silences or Silences()
    try:
        await set_up_session(connection, settings)
    except BaseException:
        await connection.close()
        raise
    return connection


def open_sync_connection(
    conninfo: str,
    *,
    application: str,
    settings: str = LIMITS,
    answer_seconds_max: float = ANSWER_SECONDS_MAX,
    autocommit: bool = True,
) -> SyncLogConnection:
    """Open a blocking connection like `open_connection`."""
    connection = SyncLogConnection.connect(conninfo, **connection_arguments(application))
    connection.answer_seconds_max = answer_seconds_max
    try:
        connection.adapters.register_dumper(BinaryColumn, ColumnDumper)
        connection.execute(session_statement(connection.info.server_version, settings))
        connection.autocommit = autocommit
    except BaseException:
        connection.close()
        raise
    return connection


async def open_pool(
    conninfo: str,
    *,
    application: str,
    least: int,
    most: int,
    wait_seconds: float,
    settings: str,
    answer_seconds_max: float = ANSWER_SECONDS_MAX,
    silences: Silences | None = None,
    on_connection: Callable[[], None] = lambda: None,
    check: Callable[[LogConnection], Awaitable[None]] | None = None,
) -> AsyncConnectionPool[LogConnection]:
    """Open a connection pool with the limits of `open_connection`.

    Args:
        conninfo: The URL of the database.
        application: Purpose of the connections, shown in `pg_stat_activity`.
        least: Number of connections kept open; they are ready on return.
        most: Maximum number of connections.
        wait_seconds: How long a caller waits for a free connection.
        settings: SQL for limits and planner settings.
        answer_seconds_max: How long to wait for an answer.
        silences: Shared by the connections of a process to one database.
        on_connection: Called for each new connection.
        check: Check of a connection before it is lent.
    """
    shared_silences = silences or Silences()

    async def configure(connection: LogConnection) -> None:
        on_connection()
        connection.answer_seconds_max = answer_seconds_max
        connection.silences = shared_silences
        await set_up_session(connection, settings)

    pool: AsyncConnectionPool[LogConnection] = AsyncConnectionPool(
        conninfo,
        connection_class=LogConnection,
        min_size=least,
        max_size=most,
        timeout=wait_seconds,
        configure=configure,
        kwargs=connection_arguments(application),
        check=check,
        open=False,
    )
    await pool.open(wait=True, timeout=wait_seconds)
    return pool
