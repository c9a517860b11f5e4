"""Format number of a log. Only `spawnlog migrate` raises it."""

from domain.event_types import LOG_FORMAT
from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection


class UnknownFormatError(UserError):
    """The log's format is unknown to this program: it must neither append nor fold."""


async def format_of(connection: LogConnection) -> int:
    """Return the format of the connection's log."""
    row = await (await connection.execute("SELECT format FROM log_head")).fetchone()
    if row is None:
        raise UserError("the log has no head; restore it from a backup")
    return int(row[0])


def require_known_format(found: int) -> None:
    """Refuse a log whose format is newer than this program's.

    Raises:
        UnknownFormatError: A newer release has raised the format.
    """
    if found > LOG_FORMAT:
        raise UnknownFormatError(
            f"the log has format {found} and this program knows {LOG_FORMAT};"
            " install a newer spawnlog"
        )
