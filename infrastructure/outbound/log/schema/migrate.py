"""Bringing a database to the schema of this release, by Alembic."""

from functools import partial

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.pool import NullPool

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
        UserError: A newer release has migrated it.
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
            upgrade_within(connection)
            connection.commit()
            connection.execute(text("SELECT pg_advisory_unlock_all()"))
            connection.commit()
            return before, newest_revision()
    finally:
        engine.dispose()
