"""Of which version the rows of the projections are, and whether this program may work on them."""

from application.projections.catalog import PROJECTIONS
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormat

VERSIONS = {one.name: one.version for one in PROJECTIONS}
"""The version of the rows that this program makes, by projection."""


NOTED_VERSIONS = "(SELECT string_agg(name || ' ' || version, ', ' ORDER BY name) FROM projections)"
"""An expression of SQL: what `must_be_ours` is asked about. Read under the append lock, it cannot
change before the commit, because a rebuild takes that lock to exchange the tables."""


NOTE_VERSION = (
    "INSERT INTO projections (name, version) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = excluded.version"
)
_OWN_VERSIONS = ", ".join(f"{name} {version}" for name, version in sorted(VERSIONS.items()))


class IncompatibleRows(UnknownFormat):
    """The rows are of a version that this program does not make: it may not write any."""


def require_known_rows(noted: str | None) -> None:
    """Raises `IncompatibleRows` for rows that another release has rebuilt since this program
    started.

    None, for a database in which nothing is noted yet, is fine.
    """
    if noted is not None and noted != _OWN_VERSIONS:
        raise IncompatibleRows(
            f"the rows are of another version now ({noted}) than this program makes "
            f"({_OWN_VERSIONS});"
            " stop this server and start the release that rebuilt them"
        )


async def check_known_rows(connection: LogConnection) -> None:
    """Raises `IncompatibleRows` as `must_be_ours` does."""
    row = await (await connection.execute(f"SELECT {NOTED_VERSIONS}")).fetchone()
    require_known_rows(row[0] if row is not None else None)


async def note_versions(connection: LogConnection) -> None:
    """Write down that the rows are of the versions that this program makes."""
    for name, version in VERSIONS.items():
        await connection.execute(NOTE_VERSION, [name, version])


async def stale_projections(connection: LogConnection) -> tuple[str, ...]:
    """Projections whose rows are of another version than this program makes."""
    found = await _noted_versions(connection)
    if not found and not await _has_events(connection):
        # A log that was just made: its rows, none so far, are of this version.
        await note_versions(connection)
        return ()
    return tuple(name for name, version in VERSIONS.items() if found.get(name) != version)


async def require_not_newer(connection: LogConnection) -> None:
    """`UserError` when a newer release has made the rows: an older one does not start by undoing
    that."""
    found = await _noted_versions(connection)
    newer = [name for name, version in VERSIONS.items() if found.get(name, 0) > version]
    if newer:
        raise UserError(
            f"the rows of {', '.join(newer)} are of a newer version than this program makes;"
            " install a newer spawnlog, or run `spawnlog log rebuild` to go back"
        )


async def _noted_versions(connection: LogConnection) -> dict[str, int]:
    rows = await (await connection.execute("SELECT name, version FROM projections")).fetchall()
    return {row[0]: row[1] for row in rows}


async def _has_events(connection: LogConnection) -> bool:
    row = await (await connection.execute("SELECT EXISTS (SELECT FROM events)")).fetchone()
    return bool(row and row[0])
