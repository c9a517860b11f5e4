"""The database of a server: embedded by default, any other by URL."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from infrastructure.contract.errors import UserError
from infrastructure.outbound.embedded_postgres.errors import EmbeddedPostgresError
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.migrate import current_revision, migrate, newest_revision


@dataclass(slots=True)
class Database:
    """Where the log is. `ensure_running` is for the paths on which connections are made anew."""

    conninfo: str
    ensure_running: Callable[[], None]
    close: Callable[[], None]


def open_database(url: str | None, embedded_home: Path) -> Database:
    """Reach the server given by URL, or join or start the embedded one and bring it up to date.

    `UserError` says what to do when it cannot be had, or when its schema is not of this release.
    """
    if url is not None:
        _must_be_ready(url)
        return Database(url, _do_nothing, _do_nothing)
    try:
        server = EmbeddedPostgres.start(embedded_home)
    except EmbeddedPostgresError as error:
        raise UserError(str(error)) from error
    try:
        migrate(server.conninfo)
    except SQLAlchemyError as error:
        server.close()
        raise UserError(f"the embedded database cannot be used: {_reason(error)}") from error
    except BaseException:
        server.close()
        raise
    return Database(server.conninfo, server.ensure_running, server.close)


def migrate_database(url: str | None, embedded_home: Path) -> str:
    """Bring the schema up to date; gives a sentence about it."""
    if url is None:
        database = open_database(None, embedded_home)
        database.close()
        return f"the embedded database is at revision {newest_revision()}"
    try:
        before, after = migrate(url)
    except (SQLAlchemyError, ValueError) as error:
        raise UserError(f"the database cannot be migrated: {_reason(error)}") from error
    if before == after:
        return f"the database was already at revision {after}"
    return f"the database went from {before or 'empty'} to revision {after}"


def _must_be_ready(url: str) -> None:
    try:
        found = current_revision(url)
    except (SQLAlchemyError, psycopg.Error, ValueError) as error:
        raise UserError(
            f"the database cannot be reached: {_reason(error)}; check --database-url"
        ) from error
    newest = newest_revision()
    if found != newest:
        raise UserError(
            f"the database is at revision {found or 'none'} and this release needs {newest};"
            " run `spawnlog migrate` with the same --database-url"
        )


def _reason(error: BaseException) -> str:
    """The first line of what went wrong: drivers put addresses, but no passwords, there."""
    origin = getattr(error, "orig", None) or error
    lines = str(origin).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _do_nothing() -> None:
    """An outside server is not ours to start or stop."""
