"""The format of a log, which only `spawnlog migrate` raises."""

from domain.event_types import LOG_FORMAT
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection


class UnknownFormat(UserError):
    """The log is of a format that this program does not know: it may neither append nor fold."""


async def format_of(connection: LogConnection) -> int:
    """The format of the log that a connection is to."""
    row = await (await connection.execute("SELECT format FROM log_head")).fetchone()
    if row is None:
        raise UserError("the log has no head; restore it from a backup")
    return int(row[0])


def require_known_format(found: int) -> None:
    """Raises `UnknownFormat` for a log that a newer release has written."""
    if found > LOG_FORMAT:
        raise UnknownFormat(
            f"the log has format {found} and this program knows {LOG_FORMAT};"
            " install a newer spawnlog"
        )
