"""Whose log it is: spawnlog's own, or that of an application of the eventsourcing library."""

from infrastructure.contract.errors import UserError
from infrastructure.outbound.log.schema.connections import LogConnection

OWNER = "SELECT to_jsonb(log_head) ->> 'application' FROM log_head"
"""The application's name, or NULL. It may also be asked in a schema that is older than marks."""


async def require_own_log(connection: LogConnection) -> None:
    """`UserError` when an application of the eventsourcing library has its log here."""
    row = await (await connection.execute(OWNER)).fetchone()
    if row is not None and row[0] is not None:
        raise UserError(
            f"this log belongs to the eventsourcing application {row[0]}; give the server a"
            " database or a schema of its own (--database-url)"
        )
