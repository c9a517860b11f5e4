"""Files that are kept until they are written where they belong, as an append writes them."""

from collections.abc import Sequence

from application.ports.event_log import StagedFile
from infrastructure.outbound.log.binary_format import column
from infrastructure.outbound.log.connections import Connection

INSERT_STAGED = (
    "INSERT INTO staged_files (run_id, ordinal, body)"
    " SELECT * FROM unnest(%b::uuid[], %b::int[], %b::bytea[])"
)


async def store_staged(connection: Connection, staged: Sequence[StagedFile]) -> None:
    """In a statement of its own: next to no append has any."""
    await connection.execute(
        INSERT_STAGED,
        [
            column("uuid", [one.run_id for one in staged]),
            column("int", [one.ordinal for one in staged]),
            column("bytea", [one.body for one in staged]),
        ],
    )
