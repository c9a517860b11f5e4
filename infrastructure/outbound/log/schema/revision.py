"""The revision of the schema: which one this release needs, and which one a database is at.

Without Alembic, which takes a fifth of a server's start to load: it is needed only where the two
differ.
"""

import re
from pathlib import Path

import infrastructure
from infrastructure.outbound.log.schema.connections import open_sync_connection

_SCRIPT = re.compile(r"([0-9]{4})_[a-z0-9_]+\.py")


def scripts_folder() -> Path:
    """The migrations: beside the source tree, else as packaged in the wheel."""
    package = Path(infrastructure.__file__).parent
    packaged = package / "migrations"
    return packaged if packaged.is_dir() else package.parent / "alembic"


def newest_revision() -> str:
    """The revision this release needs. The name of a migration begins with its revision."""
    names = (path.name for path in (scripts_folder() / "versions").iterdir())
    return max(found[1] for found in map(_SCRIPT.fullmatch, names) if found)


def current_revision(conninfo: str) -> str | None:
    """The revision the database is at; None for an empty one. Raises `psycopg.Error`, and
    `ValueError` for what is no URL of a database."""
    require_database_url(conninfo)
    with open_sync_connection(conninfo, application="start") as connection:
        found = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
        if found is None or not found[0]:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row is not None else None


def require_database_url(conninfo: str) -> None:
    """Raises `ValueError` unless it begins with `postgresql://` or `postgres://`."""
    scheme, separator, _ = conninfo.partition("://")
    if not separator or scheme not in ("postgresql", "postgres"):
        raise ValueError("the database URL must begin with postgresql://")
