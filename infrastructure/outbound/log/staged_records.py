"""Files that are kept until they are written where they belong, as an append writes them."""

from collections.abc import Sequence

from application.log.event_log import StagedFile
from infrastructure.outbound.log.codec.binary import encode_column
from infrastructure.outbound.log.schema.connections import LogConnection

INSERT_STAGED = (
    "INSERT INTO staged_files (run_id, ordinal, body)"
    " SELECT * FROM unnest(%b::uuid[], %b::int[], %b::bytea[])"
)


async def store_staged(connection: LogConnection, staged: Sequence[StagedFile]) -> None:
    """In a statement of its own: next to no append has any."""
    await connection.execute(
        INSERT_STAGED,
        [
            encode_column("uuid", [one.run_id for one in staged]),
            encode_column("int", [one.ordinal for one in staged]),
            encode_column("bytea", [one.body for one in staged]),
        ],
    )
