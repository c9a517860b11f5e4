"""Bringing a database to the schema of this release, by Alembic."""

from functools import partial

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.append_lock import LOCK_KEY
from infrastructure.outbound.log.schema.connections import (
    NO_LIMITS,
    WHOLE_TABLE_ANSWER_SECONDS_MAX,
    open_sync_connection,
)
from infrastructure.outbound.log.schema.revision import (
    newest_revision,
    require_database_url,
    require_known_revision,
    scripts_folder,
)

MIGRATION_LOCK = 0x53504D47
TABLES_LOCK_MILLISECONDS_MAX = 10_000


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    return configuration


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema that a connection looks into; None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade_within(connection: Connection) -> None:
    """Bring that schema up to date as part of the connection's open transaction."""
    configuration = _configuration()
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, "head")


def migration_engine(conninfo: str) -> Engine:
    """Return an engine whose connections take as long as a whole table needs.

    Raises:
        ValueError: It is no URL of a database.
    """
    require_database_url(conninfo)
    connect = partial(
        open_sync_connection,
        conninfo,
        application="migrate",
        settings=NO_LIMITS,
        answer_seconds_max=WHOLE_TABLE_ANSWER_SECONDS_MAX,
        autocommit=False,
    )
    return create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)


def migrate(conninfo: str) -> tuple[str | None, str]:
    """Bring the database up; two that do so at once wait for each other. Gives old and new.

    Raises:
        UserError: A newer release has migrated it, or somebody reads its tables for long.
    """
    engine = migration_engine(conninfo)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"SELECT pg_advisory_lock({MIGRATION_LOCK})"))
            before = revision_of(connection)
            connection.commit()
            require_known_revision(before)
            connection.execute(text(f"SELECT pg_advisory_lock({LOCK_KEY})"))
            connection.commit()
            if before not in (None, newest_revision()):
                _lock_tables(connection)
            upgrade_within(connection)
            connection.commit()
            connection.execute(text("SELECT pg_advisory_unlock_all()"))
            connection.commit()
            return before, newest_revision()
    finally:
        engine.dispose()


def _lock_tables(connection: Connection) -> None:
    """Lock what a migration changes in the order in which readers do, so that none closes a ring.

    Appends wait meanwhile, so it gives up rather than wait for whoever reads all of the log.
    """
    limit = f"SET LOCAL lock_timeout = {TABLES_LOCK_MILLISECONDS_MAX}"
    try:
        connection.execute(text(limit))
        connection.execute(text("LOCK TABLE runs, sessions, events IN ACCESS EXCLUSIVE MODE"))
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise
        raise UserError(
            "the log is read at this moment, and its tables cannot be changed: wait for exports,"
            " verifications and rebuilds to end, or end them, and run this again"
        ) from error
    connection.execute(text("SET LOCAL lock_timeout = 0"))
