"""Bringing a database to the schema of this release, by Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

import infrastructure

MIGRATION_LOCK = 0x53504D47


def scripts_folder() -> Path:
    """The migrations: beside the source tree, else as packaged in the wheel."""
    package = Path(infrastructure.__file__).parent
    packaged = package / "migrations"
    return packaged if packaged.is_dir() else package.parent / "alembic"


def _configuration() -> Config:
    configuration = Config()
    configuration.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    return configuration


def sqlalchemy_url(conninfo: str) -> str:
    """The same database in SQLAlchemy's spelling."""
    scheme, separator, rest = conninfo.partition("://")
    if not separator or scheme not in ("postgresql", "postgres"):
        raise ValueError("the database URL must begin with postgresql://")
    return f"postgresql+psycopg://{rest}"


def newest_revision() -> str:
    """The revision this release needs."""
    head = ScriptDirectory.from_config(_configuration()).get_current_head()
    assert head is not None
    return head


def current_revision(conninfo: str) -> str | None:
    """The revision the database is at; None for an empty one."""
    engine = create_engine(sqlalchemy_url(conninfo), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return revision_of(connection)
    finally:
        engine.dispose()


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema that a connection looks into; None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade_within(connection: Connection) -> None:
    """Bring that schema up to date as part of the connection's open transaction."""
    configuration = _configuration()
    configuration.attributes["connection"] = connection
    command.upgrade(configuration, "head")


def migrate(conninfo: str) -> tuple[str | None, str]:
    """Bring the database up; two that do so at once wait for each other. Gives old and new."""
    engine = create_engine(sqlalchemy_url(conninfo), poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"SELECT pg_advisory_lock({MIGRATION_LOCK})"))
            before = revision_of(connection)
            connection.commit()
            upgrade_within(connection)
            connection.commit()
            connection.execute(text(f"SELECT pg_advisory_unlock({MIGRATION_LOCK})"))
            connection.commit()
            return before, newest_revision()
    finally:
        engine.dispose()
