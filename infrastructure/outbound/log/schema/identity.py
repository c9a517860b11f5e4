"""Identity of a log, and the check that this server may work on it."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from psycopg import errors

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from infrastructure.outbound.log.schema.projection_versions import require_not_newer


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """A log's id and its schema."""

    log_id: UUID
    schema: str


def _accept(_: UUID) -> None:
    """Accept any log."""


async def identify(
    connection: LogConnection, storage_home: str, claim: Callable[[UUID], None] = _accept
) -> LogIdentity:
    """Return the identity of the log, and bind the log to this data directory if it is unbound.

    Args:
        connection: A connection to the log's schema.
        storage_home: Id of the data directory. All servers of a log share the directory that holds
            its transcripts.
        claim: Records the log's id in the data directory, before the log is bound. If it refuses,
            the log stays as it is.

    Raises:
        UserError: A file is being imported into the log, the log belongs to another data directory
            or has a newer format, or a newer release has written its projections.
    """
    require_known_format(await format_of(connection))
    try:
        async with connection.transaction():
            identity = await _bind(connection, storage_home, claim)
    except errors.LockNotAvailable as error:
        raise UserError(
            "a file is being imported into this log (`spawnlog log import`); start again when that"
            " is done"
        ) from error
    await require_not_newer(connection)
    return identity


async def _bind(
    connection: LogConnection, storage_home: str, claim: Callable[[UUID], None]
) -> LogIdentity:
    # Holds the row, so that neither an import nor another directory takes the log meanwhile.
    await connection.execute(
        "UPDATE log_head SET storage_home = %s WHERE storage_home IS NULL", [storage_home]
    )
    row = await (
        await connection.execute("SELECT log_id, current_schema(), storage_home FROM log_head")
    ).fetchone()
    assert row is not None
    if row[2] != storage_home:
        raise UserError(
            "this log belongs to another data directory, where its transcripts are; start with"
            " that one (--data-dir)"
        )
    claim(row[0])
    return LogIdentity(row[0], row[1])
