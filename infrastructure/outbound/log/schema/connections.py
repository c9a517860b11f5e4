"""Connections to the database, as the log needs them."""

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

from application.log.event_log import LogUnavailable
from infrastructure.outbound.log.codec.binary import BinaryColumn, ColumnDumper
from infrastructure.outbound.log.schema.session import session_statement

CONNECT_TIMEOUT_SECONDS = 10
CONNECT_SECONDS_MAX = 30.0
"""For all addresses of the URL together, and to look them up."""
LOCK_TIMEOUT_MS = 10_000
STATEMENT_TIMEOUT_MS = 30_000
IDLE_IN_TRANSACTION_TIMEOUT_MS = 5_000
KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds
}
"""For how long a connection to a database on another machine is believed in that says nothing."""
ANSWER_SECONDS_MAX = 35.0
"""How long the client waits for an answer. Longer than `STATEMENT_TIMEOUT_MS`: a database that is
only slow ends the statement itself, and one that says nothing at all is given up."""
WHOLE_TABLE_ANSWER_SECONDS_MAX = 6 * 3600.0


def session_limits(
    *,
    lock_ms: int = LOCK_TIMEOUT_MS,
    statement_ms: int = STATEMENT_TIMEOUT_MS,
    idle_ms: int = IDLE_IN_TRANSACTION_TIMEOUT_MS,
) -> str:
    """Return the SQL that limits a session's waits, in milliseconds; 0 is no limit.

    `lock_ms` must be less than `statement_ms`, so that the error of a wait names the lock.
    """
    return (
        f"SET lock_timeout = {lock_ms}; SET statement_timeout = {statement_ms};"
        f" SET idle_in_transaction_session_timeout = {idle_ms}"
    )


LIMITS = session_limits()
CLIENT_CHECK_MS = 2_000
# PostgreSQL refuses it on a system that cannot tell whether a client is there.
CLIENT_CHECK = (
    f"DO $$ BEGIN SET client_connection_check_interval = {CLIENT_CHECK_MS};"
    " EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$"
)
"""SQL that has a statement end within `CLIENT_CHECK_MS` of its client, however long it takes."""
STATEMENTS_WITHOUT_LIMIT = f"SET statement_timeout = 0; {CLIENT_CHECK}"
"""For work on whole tables."""
NO_LIMITS = f"{session_limits(lock_ms=0, statement_ms=0, idle_ms=0)}; {STATEMENTS_WITHOUT_LIMIT}"
"""For migrations."""


# Every question of a server goes along an index. A plan that was made while the tables were small
# would read them whole, and go on doing so when they are large.
PLANNING = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off"

# What an append asks and stores is always the same, by keys and along their indexes. To plan it
# anew for each costs the database as much as to carry it out. Not for the pages that others read:
# how long one is decides about the best way to it.
WRITER_PLANNING = f"{PLANNING}; SET plan_cache_mode = force_generic_plan"


# A primary that became a standby, or that an operator has locked: it answers, and stays as it is.
_READ_ONLY = psycopg.errors.ReadOnlySqlTransaction
UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, _READ_ONLY)
"""Errors that are the database's and may be gone in a moment, whatever was asked of it."""


READING_CONNECTIONS_MAX = 12

# One for each kind of work that goes on by itself: none of them waits for another.
COORDINATION_CONNECTIONS_MAX = 8
DIRECT_CONNECTIONS_MAX = 3
"""Of the writer, the tail and the listener."""
SERVER_CONNECTIONS_MAX = (
    READING_CONNECTIONS_MAX + COORDINATION_CONNECTIONS_MAX + DIRECT_CONNECTIONS_MAX
)
# Of an attempt to connect libpq keeps no SQLSTATE, and these are its texts.
_CROWDED = ("too many clients", "remaining connection slots", "too many connections")


def crowding_advice(error: BaseException) -> str | None:
    """Return what to do if all connections of the database are taken; None for another error."""
    if not any(words in str(error) for words in _CROWDED):
        return None
    return (
        "all its connections are taken (too many connections); each server of the log holds up to"
        f" {SERVER_CONNECTIONS_MAX}, and a command a few more: raise max_connections of PostgreSQL,"
        " or the connection limit of the role or database"
    )


def refusal_to_write(error: BaseException) -> str | None:
    """Why a database that answers records nothing, and what is to be done about it; None when the
    error is another one."""
    if isinstance(error, _READ_ONLY):
        return "the database is read-only; ask again when it takes writes"
    if isinstance(error, psycopg.errors.DiskFull):
        return "the disk of the database is full; ask again when there is room on it"
    return None


_WAIT_INTERVAL_SECONDS = 0.1
RV = TypeVar("RV")


class DatabaseSilent(psycopg.OperationalError):
    """The database did not answer in time, so the connection was closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the database did not answer within {seconds:g} s")


class Silences:
    """When a connection of a process last waited in vain, on the monotonic clock. A NAT that forgot
    one connection has forgotten the others too: those that were not heard since are doubtful."""

    def __init__(self) -> None:
        self.noted_at = -math.inf


class LogConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection that waits no longer than `answer_seconds_max` for each answer.

    It is closed then, because nothing is known of the statement: a peer that acknowledges what is
    sent and never answers passes every test of the operating system.
    """

    answer_seconds_max = ANSWER_SECONDS_MAX
    heard_at = -math.inf
    silences = Silences()

    @property
    def is_doubtful(self) -> bool:
        """Return True if another connection waited in vain since this one was heard."""
        return self.heard_at < self.silences.noted_at

    async def wait(
        self,
        gen: PQGen[RV],
        interval: float = _WAIT_INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """Wait for an answer. With a `timeout` the caller has a limit of its own."""
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
            raise DatabaseSilent(self.answer_seconds_max) from error
        self.heard_at = time.monotonic()
        return answer

    async def copy_out(self, statement: str) -> list[bytes]:
        """Return the rows of a binary COPY, each with the number of its columns in front."""
        async with self.lock:
            return await self.wait(_copied_rows(self.pgconn, statement))


class SyncLogConnection(psycopg.Connection[TupleRow]):
    """A blocking connection with the same limit."""

    answer_seconds_max = ANSWER_SECONDS_MAX

    def wait(
        self,
        gen: PQGen[RV],
        interval: float = _WAIT_INTERVAL_SECONDS,
        timeout: float | None = None,
    ) -> RV:
        """Wait for an answer. With a `timeout` the caller has a limit of its own."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        began = time.monotonic()
        try:
            return super().wait(gen, interval, self.answer_seconds_max)
        except psycopg.OperationalError as error:
            if time.monotonic() - began < self.answer_seconds_max:
                raise
            self.pgconn.finish()
            raise DatabaseSilent(self.answer_seconds_max) from error

    def copy_out(self, statement: str) -> list[bytes]:
        """Return the rows of a binary COPY, each with the number of its columns in front."""
        with self.lock:
            return self.wait(_copied_rows(self.pgconn, statement))


_COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"


def _copied_rows(connection: PGconn, statement: str) -> PQGen[list[bytes]]:
    """What a statement copies out, outside a pipeline.

    A `Copy` of the driver would wait for each row by itself, which takes as long as its hash.
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
    """A pooled connection; when the database is away or records nothing, `LogUnavailable` says
    so."""
    try:
        async with pool.connection() as connection:
            yield connection
    except UNAVAILABLE as error:
        why = refusal_to_write(error) or "the database is away; ask again in a moment"
        raise LogUnavailable(why) from error


def connection_arguments(application: str) -> dict[str, Any]:
    """Return the parameters that every connection is opened with; they override the URL's."""
    return {
        "autocommit": True,
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": f"spawnlog {application}",
        # Also in FIXED, for the text of an error before that is sent.
        "client_encoding": "UTF8",
        **KEEPALIVE,
    }


async def set_up_session(connection: LogConnection, settings: str) -> None:
    """Fix the settings of a new connection.

    Not by libpq's `options`, which would replace those that stand in the URL, such as the schema,
    and which poolers refuse.
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
    """Open a connection outside any transaction, with limits on what it may wait for.

    Args:
        conninfo: The URL of the database.
        application: What the connection is for, as `pg_stat_activity` shows it.
        settings: SQL that sets limits and planning, in the round trip that sets the session up.
        answer_seconds_max: How long to wait for an answer; longer than a statement may take.
        silences: Shared by the connections of a process to one database.
    """
    try:
        async with asyncio.timeout(CONNECT_SECONDS_MAX):
            connection = await LogConnection.connect(conninfo, **connection_arguments(application))
    except TimeoutError as silent:
        raise DatabaseSilent(CONNECT_SECONDS_MAX) from silent
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
    """Open a blocking connection as `open_connection` opens one."""
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
    """Open a pool of such connections; `least` of them are ready when it returns."""
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
