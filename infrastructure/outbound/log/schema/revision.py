"""Schema revision that this release needs, and the revision of a database.

This module avoids Alembic, which takes a fifth of a server's start to load and is needed only if
the two differ.
"""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

import infrastructure
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import open_sync_connection
from infrastructure.outbound.log.schema.session_pooling import require_own_session

_SCRIPT = re.compile(r"([0-9]{4})_[a-z0-9_]+\.py")


def scripts_folder() -> Path:
    """Return the folder of the migrations: next to the source tree, or packaged in the wheel."""
    package = Path(infrastructure.__file__).parent
    packaged = package / "migrations"
    return packaged if packaged.is_dir() else package.parent / "alembic"


def newest_revision() -> str:
    """Return the revision that this release needs."""
    return max(_revisions(), key=int)


def _revisions() -> set[str]:
    """Return all revisions, from the names of their scripts: `0002_the_log.py` is revision 2."""
    names = (path.name for path in (scripts_folder() / "versions").iterdir())
    return {str(int(found[1])) for found in map(_SCRIPT.fullmatch, names) if found}


@dataclass(frozen=True, slots=True)
class FoundDatabase:
    """Revision of a database (None if it is empty) and its encoding."""

    revision: str | None
    encoding: str


def inspect_database(conninfo: str) -> FoundDatabase:
    """Return the revision and encoding of a database.

    Raises:
        psycopg.Error: The database cannot be reached.
        UserError: A connection pooler shares sessions between connections.
        ValueError: `conninfo` is not a database URL.
    """
    require_database_url(conninfo)
    connect = partial(open_sync_connection, conninfo, application="start")
    with connect() as connection:
        require_own_session(connection, connect)
        encoding = encoding_of(connection)
        found = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
        if found is None or not found[0]:
            return FoundDatabase(None, encoding)
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return FoundDatabase(str(row[0]) if row is not None else None, encoding)


def encoding_of(connection: psycopg.Connection[Any]) -> str:
    """Return the encoding of the database, as the server reported it at connection start."""
    return connection.info.parameter_status("server_encoding") or "unknown"


def require_utf8(encoding: str) -> None:
    """Refuse a database whose encoding is not UTF8: it cannot hold every text, or does not check
    the texts that it holds."""
    if encoding != "UTF8":
        raise UserError(
            f"the database has the encoding {encoding}, but a log needs UTF8: create a database"
            " with ENCODING 'UTF8' TEMPLATE template0"
        )


def require_known_revision(found: str | None) -> None:
    """Refuse the schema of an earlier format or a newer release. None, an empty database, is
    accepted."""
    if found is None or found in _revisions():
        return
    if _is_of_earlier_format(found):
        raise UserError(
            f"the database is at revision {found}, an earlier format that this release does not"
            " read: keep its log as a file with `spawnlog log export --contents --transcripts` of"
            " the release that wrote it, and start with another data directory (--data-dir) or"
            " database (--database-url)"
        )
    raise UserError(
        f"the database is at revision {found}, which this release does not know: it knows"
        f" revisions up to {newest_revision()}; install the newer spawnlog that migrated the"
        " database, or name another database"
    )


def _is_of_earlier_format(revision: str) -> bool:
    """Return True if the revision precedes the first one of this format, or has leading zeros, as
    the revisions of the earlier format had."""
    return revision.isdecimal() and (
        revision.startswith("0") or int(revision) < min(map(int, _revisions()))
    )


def require_database_url(conninfo: str) -> None:
    """Require a URL that begins with `postgresql://` or `postgres://`.

    Raises:
        ValueError: It does not, or it cannot be parsed.
    """
    scheme, separator, _ = conninfo.partition("://")
    if not separator or scheme not in ("postgresql", "postgres"):
        raise ValueError("the database URL must begin with postgresql://")
    try:
        conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        # The original message repeats the URL, which may contain a password.
        raise ValueError(
            "the database URL cannot be read: write postgresql://user@host:port/database, with"
            " special characters percent-encoded (@ is %40)"
        ) from None
