"""Makes an application's schema ready, and keeps it apart from everybody else's.

A log is made, migrated and marked with the application's name in one transaction: there is no
moment at which it could be taken for spawnlog's own.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eventsourcing.persistence import NotSupportedError, OperationalError, ProgrammingError
from psycopg.rows import tuple_row
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection, create_engine, text
from sqlalchemy import exc as sqlalchemy_errors
from sqlalchemy.pool import NullPool

from infrastructure.contract.errors import UserError
from infrastructure.outbound.eventsourcing_log.settings import LogDatastore
from infrastructure.outbound.log.schema.connections import (
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    SyncLogConnection,
)
from infrastructure.outbound.log.schema.format import OWNER
from infrastructure.outbound.log.schema.migrate import MIGRATION_LOCK, revision_of, upgrade_within
from infrastructure.outbound.log.schema.revision import (
    encoding_of,
    newest_revision,
    require_known_revision,
    require_utf8,
)
from infrastructure.outbound.log.schema.session_pooling import require_own_session

LOCK_TIMEOUT_SECONDS = 60

# Alembic keeps the migration that is under way in a global of its module.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class _SchemaState:
    """What is in the schema; `owner` is None for spawnlog's own log."""

    has_schema: bool
    has_log: bool
    owner: str | None


def prepare_log(datastore: LogDatastore, application: str, *, may_create: bool) -> None:
    """See to it that the schema holds the log of this application, at this release's revision.

    Raises `NotSupportedError` when the schema holds another log, `ProgrammingError` when something
    is missing and may not be created, or is in the way.
    """

    def prepare(connection: Connection) -> None:
        found = _inspect_schema(connection, datastore.schema)
        if found.has_log:
            _require_owner(found, datastore.schema, application)
        revision = revision_of(connection) if found.has_log else None
        if revision == newest_revision():
            return
        require_known_revision(revision)
        if not may_create:
            raise ProgrammingError(
                f"schema {datastore.schema} has no log of this release; start once with"
                " CREATE_TABLE=yes, or run `spawnlog migrate` on a log that is there"
            )
        _create_schema(connection, found, datastore.schema)
        with _one_at_a_time:
            upgrade_within(connection)
        if not found.has_log:
            connection.execute(text("UPDATE log_head SET application = :it"), {"it": application})

    _within_transaction(datastore, prepare)


def prepare_schema(datastore: LogDatastore, *, may_create: bool) -> None:
    """See to it that there is a schema for tables of the library's own, outside spawnlog's log.

    Raises `NotSupportedError` when the schema holds a log of spawnlog's.
    """

    def prepare(connection: Connection) -> None:
        found = _inspect_schema(connection, datastore.schema)
        if found.has_log and found.owner is None:
            raise _foreign_log_error(datastore.schema)
        if may_create:
            _create_schema(connection, found, datastore.schema)

    _within_transaction(datastore, prepare)


def _inspect_schema(connection: Connection, schema: str) -> _SchemaState:
    has_schema = connection.scalar(
        text("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = :name)"), {"name": schema}
    )
    has_log = connection.scalar(text("SELECT to_regclass('log_head') IS NOT NULL"))
    owner = connection.scalar(text(OWNER)) if has_log else None
    return _SchemaState(bool(has_schema), bool(has_log), owner)


def _require_owner(found: _SchemaState, schema: str, application: str) -> None:
    if found.owner is None:
        raise _foreign_log_error(schema)
    if found.owner != application:
        raise NotSupportedError(
            f"schema {schema} holds the log of application '{found.owner}'; name one of its own"
            f" for '{application}' with POSTGRES_SCHEMA"
            " (or with the application's name in front of the variable)"
        )


def _foreign_log_error(schema: str) -> NotSupportedError:
    return NotSupportedError(
        f"schema {schema} holds spawnlog's own log, where no application may write; name another"
        " one with POSTGRES_SCHEMA"
    )


def _create_schema(connection: Connection, found: _SchemaState, schema: str) -> None:
    # Not IF NOT EXISTS, which asks for the right to create even where nothing is to be created.
    if not found.has_schema:
        statement = SQL("CREATE SCHEMA {}").format(Identifier(schema))
        connection.exec_driver_sql(statement.as_string().replace("%", "%%"))


def _within_transaction(datastore: LogDatastore, work: Callable[[Connection], None]) -> None:
    def connect() -> Any:
        connection: SyncLogConnection[Any] = datastore.connect()
        try:
            require_own_session(connection, datastore.connect)
            require_utf8(encoding_of(connection))
        except BaseException:
            connection.close()
            raise
        # A migration may have to go over whole tables.
        connection.answer_seconds_max = WHOLE_TABLE_ANSWER_SECONDS_MAX
        connection.autocommit = False
        connection.row_factory = tuple_row
        return connection

    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'"))
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            work(connection)
    except UserError as error:
        raise NotSupportedError(str(error)) from error
    except sqlalchemy_errors.OperationalError as error:
        raise OperationalError(_reason(error)) from error
    except sqlalchemy_errors.SQLAlchemyError as error:
        raise ProgrammingError(
            f"schema {datastore.schema} cannot be made ready: {_reason(error)}"
        ) from error
    finally:
        engine.dispose()


def _reason(error: sqlalchemy_errors.SQLAlchemyError) -> str:
    """The first line of what went wrong, without statements and their values."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
