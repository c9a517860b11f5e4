"""Of which version the rows of the projections are, and whether this program may work on them."""

from application.projections import run_rows, session_rows
from infrastructure.failures import UserError
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.format import UnknownFormat

VERSIONS = {"runs": run_rows.VERSION, "sessions": session_rows.VERSION}
"""The version of the rows that this program makes, by projection."""

NOTED = "(SELECT string_agg(name || ' ' || version, ', ' ORDER BY name) FROM projections)"
"""An expression of SQL: what `must_be_ours` is asked about. Read under the append lock, it cannot
change before the commit, because a rebuild takes that lock to exchange the tables."""

_OURS = ", ".join(f"{name} {version}" for name, version in sorted(VERSIONS.items()))


class OtherRows(UnknownFormat):
    """The rows are of a version that this program does not make: it may not write any."""


def must_be_ours(noted: str | None) -> None:
    """Raises `OtherRows` for rows that another release has rebuilt since this program started.

    None, for a database in which nothing is noted yet, is fine.
    """
    if noted is not None and noted != _OURS:
        raise OtherRows(
            f"the rows are of another version now ({noted}) than this program makes ({_OURS});"
            " stop this server and start the release that rebuilt them"
        )


async def must_have_own_rows(connection: Connection) -> None:
    """Raises `OtherRows` as `must_be_ours` does."""
    row = await (await connection.execute(f"SELECT {NOTED}")).fetchone()
    must_be_ours(row[0] if row is not None else None)


async def note_versions(connection: Connection) -> None:
    """Write down that the rows are of the versions that this program makes."""
    for name, version in VERSIONS.items():
        await connection.execute(
            "INSERT INTO projections (name, version) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET version = excluded.version",
            [name, version],
        )


async def stale_projections(connection: Connection) -> tuple[str, ...]:
    """Projections whose rows are of another version than this program makes."""
    found = await _noted(connection)
    if not found and not await _has_events(connection):
        # A log that was just made: its rows, none so far, are of this version.
        await note_versions(connection)
        return ()
    return tuple(name for name, version in VERSIONS.items() if found.get(name) != version)


async def must_not_be_newer(connection: Connection) -> None:
    """`UserError` when a newer release has made the rows: an older one does not start by undoing
    that."""
    found = await _noted(connection)
    newer = [name for name, version in VERSIONS.items() if found.get(name, 0) > version]
    if newer:
        raise UserError(
            f"the rows of {', '.join(newer)} are of a newer version than this program makes;"
            " install a newer spawnlog, or run `spawnlog log rebuild` to go back"
        )


async def _noted(connection: Connection) -> dict[str, int]:
    rows = await (await connection.execute("SELECT name, version FROM projections")).fetchall()
    return {row[0]: row[1] for row in rows}


async def _has_events(connection: Connection) -> bool:
    row = await (await connection.execute("SELECT EXISTS (SELECT FROM events)")).fetchone()
    return bool(row and row[0])
