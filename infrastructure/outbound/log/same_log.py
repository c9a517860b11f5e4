"""Whether a log is still the one that was read before."""

from infrastructure.outbound.log.schema.connections import LogConnection


class LogWentBack(Exception):
    """The log is shorter than it was, or another one: what was told of it is not so any more."""


async def require_same_log(connection: LogConnection, seen: int, newest: bytes | None) -> None:
    """Raises `LogWentBack` when the log was put back to an older state, or is another one.

    `seen` is the last position that was seen, `newest` the chain's hash there, if it is known.
    """
    cursor = await connection.execute(
        "SELECT (SELECT position FROM log_head),"
        " (SELECT chain_hash FROM events WHERE position = %s)",
        [seen],
    )
    row = await cursor.fetchone()
    assert row is not None
    if row[0] < seen:
        raise LogWentBack(f"the log ends at {row[0]}, and has gone to {seen} before")
    if newest is not None and row[1] is not None and bytes(row[1]) != newest:
        raise LogWentBack(f"event {seen} is another one than before")
