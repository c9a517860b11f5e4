"""Migration of a database to the schema of this release, with Alembic."""

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
    """Return the revision of the connection's schema, or None if it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade_within(connection: Connection) -> None:
    """Upgrade the connection's schema within its open transaction."""
    configuration = _configuration()
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, "head")


def migration_engine(conninfo: str) -> Engine:
    """Return an engine whose connections have no time limits that work on a whole table would
    exceed.

    Raises:
        ValueError: `conninfo` is not a database URL.
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
    """Upgrade the database. Concurrent migrations wait for each other.

    Returns:
        The revisions before (None if the database was empty) and after.

    Raises:
        UserError: A newer release has migrated the database, or a long read holds its tables.
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
    """Lock the tables that a migration changes, in the same order as readers do, to avoid a
    deadlock.

    Appends wait meanwhile, so give up after `TABLES_LOCK_MILLISECONDS_MAX` instead of waiting for a
    reader of the whole log.
    """
    limit = f"SET LOCAL lock_timeout = {TABLES_LOCK_MILLISECONDS_MAX}"
    try:
        connection.execute(text(limit))
        connection.execute(text("LOCK TABLE runs, sessions, events IN ACCESS EXCLUSIVE MODE"))
    except OperationalError as error:
        if not isinstance(error.orig, psycopg.errors.LockNotAvailable):
            raise
        raise UserError(
            "the log is being read, so its tables cannot be changed: wait for exports,"
            " verifications and rebuilds to end, or stop them, and run this again"
        ) from error
    connection.execute(text("SET LOCAL lock_timeout = 0"))
