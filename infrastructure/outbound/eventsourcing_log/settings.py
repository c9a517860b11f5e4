"""What an application's environment says about its database.

The variables are those of `eventsourcing.postgres`, so that a working environment goes on working.
Each may carry the application's name in front (`ORDERS_POSTGRES_SCHEMA`), as everywhere in the
library. Instead of dbname, host, port, user and password one URL may be given.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import psycopg
from eventsourcing.postgres import PostgresDatastore
from eventsourcing.utils import Environment, resolve_topic, strtobool
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow
from psycopg.sql import SQL, Identifier

from infrastructure.outbound.log.postgres_log import channel_of
from infrastructure.outbound.log.schema.connections import (
    SyncLogConnection,
    connection_arguments,
    session_limits,
    set_up_sync_session,
)

DATABASE_URL = "SPAWNLOG_DATABASE_URL"
DBNAME = "POSTGRES_DBNAME"
HOST = "POSTGRES_HOST"
PORT = "POSTGRES_PORT"
USER = "POSTGRES_USER"
PASSWORD = "POSTGRES_PASSWORD"  # noqa: S105 - the name of a variable
GET_PASSWORD_TOPIC = "POSTGRES_GET_PASSWORD_TOPIC"  # noqa: S105
SCHEMA = "POSTGRES_SCHEMA"
CONNECT_TIMEOUT = "POSTGRES_CONNECT_TIMEOUT"
IDLE_IN_TRANSACTION_TIMEOUT = "POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT"
LOCK_TIMEOUT = "POSTGRES_LOCK_TIMEOUT"
POOL_SIZE = "POSTGRES_POOL_SIZE"
MAX_OVERFLOW = "POSTGRES_MAX_OVERFLOW"
MAX_WAITING = "POSTGRES_MAX_WAITING"
CONN_MAX_AGE = "POSTGRES_CONN_MAX_AGE"
PRE_PING = "POSTGRES_PRE_PING"
SINGLE_ROW_TRACKING = "SINGLE_ROW_TRACKING"
ENABLE_DB_FUNCTIONS = "POSTGRES_ENABLE_DB_FUNCTIONS"
ORIGINATOR_ID_TYPE = "ORIGINATOR_ID_TYPE"
LOCK_TIMEOUT_SECONDS = 10
STATEMENT_AFTER_LOCK_SECONDS = 20
"""How much longer than for a lock a statement may take: the error of a wait names the lock."""
ANSWER_AFTER_STATEMENT_SECONDS = 5.0
"""How much longer than a statement may take the client waits: a slow database ends it itself."""
SCHEMA_BYTES_MAX = 63
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Where the log is and how it is reached; times in seconds.

    `connection` holds parameters of `psycopg.connect`; `get_password` is asked before each new
    connection instead of a fixed password.
    """

    connection: dict[str, Any]
    get_password: Callable[[], str] | None
    schema: str
    connect_timeout_seconds: int
    idle_in_transaction_timeout_seconds: int
    lock_timeout_seconds: int
    pool_size: int
    pool_overflow: int
    pool_waiting_max: int
    connection_age_seconds_max: float
    ping_first: bool
    single_row_tracking: bool
    originator_id_type: Literal["uuid", "text"]

    @property
    def statement_timeout_seconds(self) -> int:
        """How long a statement may take, with its wait for locks."""
        return self.lock_timeout_seconds + STATEMENT_AFTER_LOCK_SECONDS

    @property
    def answer_seconds_max(self) -> float:
        """How long to wait for an answer of the database."""
        return self.statement_timeout_seconds + ANSWER_AFTER_STATEMENT_SECONDS

    @property
    def session(self) -> str:
        """The SQL that sets a session up: its limits and its schema."""
        limits = session_limits(
            lock_ms=self.lock_timeout_seconds * 1000,
            statement_ms=self.statement_timeout_seconds * 1000,
            idle_ms=self.idle_in_transaction_timeout_seconds * 1000,
        )
        path = SQL("SET search_path TO {}").format(Identifier(self.schema)).as_string()
        return f"{limits}; {path}"


def settings_of(env: Environment) -> LogSettings:
    """The settings of an application. `OSError`, as in the library, names the variable to mend."""
    if _is_true(env, ENABLE_DB_FUNCTIONS, "no"):
        raise OSError(
            f"{ENABLE_DB_FUNCTIONS} cannot be had here: events are numbered and chained by the"
            " application's process; remove it"
        )
    id_type = (env.get(ORIGINATOR_ID_TYPE) or "uuid").lower()
    if id_type not in ("uuid", "text"):
        raise OSError(f"{ORIGINATOR_ID_TYPE} must be 'uuid' or 'text', not '{id_type}'")
    topic = env.get(GET_PASSWORD_TOPIC)
    return LogSettings(
        connection=_connection(env, needs_password=not topic),
        get_password=resolve_topic(topic) if topic else None,
        schema=_schema(env),
        connect_timeout_seconds=_number(env, CONNECT_TIMEOUT, 30),
        idle_in_transaction_timeout_seconds=_number(env, IDLE_IN_TRANSACTION_TIMEOUT, 5),
        lock_timeout_seconds=_number(env, LOCK_TIMEOUT, 0) or LOCK_TIMEOUT_SECONDS,
        pool_size=_number(env, POOL_SIZE, 5),
        pool_overflow=_number(env, MAX_OVERFLOW, 10),
        pool_waiting_max=_number(env, MAX_WAITING, 0),
        connection_age_seconds_max=_number(env, CONN_MAX_AGE, 3600.0),
        ping_first=_is_true(env, PRE_PING, "no"),
        single_row_tracking=_is_true(env, SINGLE_ROW_TRACKING, "yes"),
        originator_id_type=cast("Literal['uuid', 'text']", id_type),
    )


def _connection(env: Environment, *, needs_password: bool) -> dict[str, Any]:
    url = env.get(DATABASE_URL)
    if url:
        return _of_url(url)
    needed = {"dbname": DBNAME, "host": HOST, "user": USER}
    if needs_password:
        needed["password"] = PASSWORD
    given = {name: env.get(variable) for name, variable in needed.items()}
    missing = [needed[name] for name, value in given.items() if value is None]
    if missing:
        raise OSError(
            f"the environment has no {', '.join(missing)}; set {DATABASE_URL},"
            f" or all of {', '.join(needed.values())}"
        )
    return {**given, "port": env.get(PORT) or "5432"}


def _of_url(url: str) -> dict[str, Any]:
    """The URL itself is never repeated: it may hold a password."""
    try:
        found = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        raise OSError(f"{DATABASE_URL} is not a PostgreSQL URL: postgresql://…") from None
    if "search_path" in str(found.get("options", "")):
        raise OSError(
            f"{DATABASE_URL} names a schema in its options; name it with {SCHEMA} instead"
        )
    return found


def _schema(env: Environment) -> str:
    schema = (env.get(SCHEMA) or "").strip() or env.name.lower()
    if not schema:
        raise OSError(f"an application without a name needs {SCHEMA}: a schema of its own")
    if len(schema.encode()) > SCHEMA_BYTES_MAX or "\0" in schema or schema.startswith("pg_"):
        raise OSError(
            f"'{schema[:SCHEMA_BYTES_MAX]}' cannot be the name of a schema: at most"
            f" {SCHEMA_BYTES_MAX} bytes, not beginning with pg_; set {SCHEMA}"
        )
    return schema


def _number(env: Environment, variable: str, otherwise: N) -> N:
    given = env.get(variable)
    if not given:
        return otherwise
    kind = type(otherwise)
    try:
        number = kind(given)
    except ValueError:
        raise OSError(f"{variable} must be a number ({kind.__name__}), not '{given}'") from None
    if not 0 <= number < 2**31:
        raise OSError(f"{variable} must not be negative or beyond 2147483647: '{given}'")
    return number


def _is_true(env: Environment, variable: str, otherwise: str) -> bool:
    given = env.get(variable) or otherwise
    try:
        return bool(strtobool(given))
    except ValueError:
        raise OSError(f"{variable} must be yes or no, not '{given}'") from None


NAMED = ("dbname", "host", "port", "user", "password")


class LogDatastore(PostgresDatastore):
    """The library's pool, of connections that look into the application's schema alone.

    Snapshots, tracking and views of the library's own making work on it as on the library's.
    """

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        named = {name: settings.connection.get(name, "") for name in NAMED}
        super().__init__(
            **named,
            connect_timeout=settings.connect_timeout_seconds,
            idle_in_transaction_session_timeout=settings.idle_in_transaction_timeout_seconds,
            pool_size=settings.pool_size,
            max_overflow=settings.pool_overflow,
            max_waiting=settings.pool_waiting_max,
            conn_max_age=settings.connection_age_seconds_max,
            pre_ping=settings.ping_first,
            lock_timeout=settings.lock_timeout_seconds,
            schema=settings.schema,
            get_password_func=settings.get_password,
            single_row_tracking=settings.single_row_tracking,
            originator_id_type=settings.originator_id_type,
        )
        # The library has no parameter for it. No connection is opened yet.
        self.pool.connection_class = SyncLogConnection[DictRow]
        assert isinstance(self.pool.kwargs, dict)
        more = {name: given for name, given in settings.connection.items() if name not in NAMED}
        self.pool.kwargs.update({**more, **connection_arguments("eventsourcing")})
        self.channel = channel_of(self.schema)
        self.is_closed = False

    def after_connect_func(self) -> Callable[[psycopg.Connection[Any]], None]:
        """Sets a new connection up. It refers to no `self`, for the pool keeps it."""
        set_up = super().after_connect_func()
        settings = self._settings

        def after_connect(connection: psycopg.Connection[Any]) -> None:
            assert isinstance(connection, SyncLogConnection)
            connection.answer_seconds_max = settings.answer_seconds_max
            set_up(connection)
            set_up_sync_session(connection, settings.session)

        return after_connect

    def connect(self) -> SyncLogConnection[DictRow]:
        """A connection that does not belong to the pool, in autocommit mode."""
        assert isinstance(self.pool.kwargs, dict)
        given: dict[str, Any] = {**self.pool.kwargs}
        if self.pool.get_password_func:
            given["password"] = self.pool.get_password_func()
        connection = SyncLogConnection[DictRow].connect(**given)
        try:
            self.after_connect_func()(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Give all connections back to the server; those who still wait for events are told."""
        self.is_closed = True
        super().close()
