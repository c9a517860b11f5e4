"""Counts the open rows by what there is to do for them, along the indexes that workers go along."""

from typing import Any

from psycopg_pool import AsyncConnectionPool

from application.ports.open_work import COUNTED_MAX, LaneCount, OpenWorkCounts
from application.projections.fold import FOREVER
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

LANES = (
    "SELECT lane, lane_depth, count(holder), count(*) - count(holder) FROM runs"
    f" WHERE lane IS NOT NULL AND to_position = {FOREVER} GROUP BY 1, 2 ORDER BY 1, 2"
)

# Every run that was announced is to be archived at some time: those are as many as the record has.
DUE = (
    "SELECT due_kind, count(*) FROM runs"
    " WHERE due_kind IN ('prepare', 'wait', 'run', 'continue', 'announce')"
    f" AND to_position = {FOREVER} GROUP BY 1"
)
EFFECTS = f"SELECT count(*) FROM runs WHERE effects_at IS NOT NULL AND to_position = {FOREVER}"
PARKED = (
    "SELECT count(*) FROM (SELECT FROM runs WHERE parked_position IS NOT NULL"
    f" AND to_position = {FOREVER} LIMIT %s) AS parked"
)
OTHERS = f"SELECT ({EFFECTS}), ({PARKED}), (SELECT position FROM log_head)"


class PostgresOpenWork:
    """Implements `OpenWork`."""

    def __init__(self, pool: AsyncConnectionPool[LogConnection]) -> None:
        self._pool = pool

    async def count(self) -> OpenWorkCounts:
        """How much there is."""
        async with borrow_connection(self._pool) as connection:
            lanes = await _rows(connection, LANES)
            due = await _rows(connection, DUE)
            [(effects, parked, head)] = await _rows(connection, OTHERS, COUNTED_MAX)
        return OpenWorkCounts(
            head=head,
            lanes=[LaneCount(*row) for row in lanes],
            due=dict(due),
            effects=effects,
            parked=parked,
        )


async def _rows(connection: LogConnection, sql: str, *values: Any) -> list[Any]:
    return await (await connection.execute(sql, values)).fetchall()
