"""Which log this is, and whether this server may work on it."""

from dataclasses import dataclass
from uuid import UUID

from psycopg import errors

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from infrastructure.outbound.log.schema.projection_versions import require_not_newer


@dataclass(frozen=True, slots=True)
class LogIdentity:
    """The log's id and the schema it lives in."""

    log_id: UUID
    schema: str


async def identify(connection: LogConnection, storage_home: str) -> LogIdentity:
    """Look whose log it is. `storage_home` is the id of the data directory: a log's transcripts
    are in one directory, so all its servers share it.

    `UserError` when a file is being imported into it, when the log is of a newer format or of
    another data directory, or when a newer release has made its projections.
    """
    require_known_format(await format_of(connection))
    try:
        await connection.execute(
            "UPDATE log_head SET storage_home = %s WHERE storage_home IS NULL", [storage_home]
        )
    except errors.LockNotAvailable as error:
        raise UserError(
            "a file is being imported into this log (`spawnlog log import`); start again when that"
            " is done"
        ) from error
    row = await (
        await connection.execute("SELECT log_id, current_schema(), storage_home FROM log_head")
    ).fetchone()
    assert row is not None
    if row[2] != storage_home:
        raise UserError(
            "this log belongs to another data directory, where its transcripts are; start with"
            " that one (--data-dir)"
        )
    await require_not_newer(connection)
    return LogIdentity(row[0], row[1])
