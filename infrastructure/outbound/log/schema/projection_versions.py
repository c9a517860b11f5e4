"""Versions of the projections' rows, and the check that this program may work on them."""

from application.projections.catalog import PROJECTIONS
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import UnknownFormatError

VERSIONS = {projection.name: projection.version for projection in PROJECTIONS}
"""The version of the rows that this program writes, by projection."""


NOTED_VERSIONS = "(SELECT string_agg(name || ' ' || version, ', ' ORDER BY name) FROM projections)"
"""SQL expression: the noted versions, as `require_known_rows` takes them. If read under the append
lock, they cannot change before the commit, because a rebuild takes that lock to swap the tables."""


NOTE_VERSION = (
    "INSERT INTO projections (name, version) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET version = excluded.version"
)
_OWN_VERSIONS = ", ".join(f"{name} {version}" for name, version in sorted(VERSIONS.items()))


class IncompatibleRowsError(UnknownFormatError):
    """The rows are of a version that this program does not write, so it must not write any."""


def require_known_rows(noted: str | None) -> None:
    """Refuse rows that another release has rebuilt since this program started. None, a database
    without noted versions, is accepted.

    Raises:
        IncompatibleRowsError: The noted versions differ from this program's.
    """
    if noted is not None and noted != _OWN_VERSIONS:
        raise IncompatibleRowsError(
            f"the rows now have another version ({noted}) than this program writes "
            f"({_OWN_VERSIONS});"
            " stop this server and start the release that rebuilt them"
        )


async def check_known_rows(connection: LogConnection) -> None:
    """Read the noted versions and check them like `require_known_rows`."""
    row = await (await connection.execute(f"SELECT {NOTED_VERSIONS}")).fetchone()
    require_known_rows(row[0] if row is not None else None)


async def note_versions(connection: LogConnection) -> None:
    """Record that the rows are of this program's versions."""
    for name, version in VERSIONS.items():
        await connection.execute(NOTE_VERSION, [name, version])


async def stale_projections(connection: LogConnection) -> tuple[str, ...]:
    """Return the projections whose rows are of another version than this program writes."""
    found = await _noted_versions(connection)
    if not found and not await _has_events(connection):
        # A new log has no rows yet, so they are of this version.
        await note_versions(connection)
        return ()
    return tuple(name for name, version in VERSIONS.items() if found.get(name) != version)


async def require_not_newer(connection: LogConnection) -> None:
    """Refuse rows written by a newer release: an older release must not start by undoing them.

    Raises:
        UserError: The rows of a projection are of a newer version.
    """
    found = await _noted_versions(connection)
    newer = [name for name, version in VERSIONS.items() if found.get(name, 0) > version]
    if newer:
        raise UserError(
            f"the rows of {', '.join(newer)} are of a newer version than this program writes;"
            " install a newer spawnlog, or run `spawnlog log rebuild` to go back"
        )


async def _noted_versions(connection: LogConnection) -> dict[str, int]:
    rows = await (await connection.execute("SELECT name, version FROM projections")).fetchall()
    return {row[0]: row[1] for row in rows}


async def _has_events(connection: LogConnection) -> bool:
    row = await (await connection.execute("SELECT EXISTS (SELECT FROM events)")).fetchone()
    return bool(row and row[0])
