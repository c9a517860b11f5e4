"""Counts of open rows by their due work, along the indexes that the workers use."""

from typing import Any

from psycopg_pool import AsyncConnectionPool

from application.ports.open_work import COUNTED_MAX, LaneCount, OpenWorkCounts
from application.projections.fold import FOREVER
from infrastructure.outbound.log.schema.connections import LogConnection, borrow_connection

LANES = (
    "SELECT lane, lane_depth, count(holder), count(*) - count(holder) FROM runs"
    f" WHERE lane IS NOT NULL AND to_position = {FOREVER} GROUP BY 1, 2 ORDER BY 1, 2"
)

# Due archives are left out: there are as many as announced runs in the log.
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
    """Counts of open work in PostgreSQL; implements `OpenWork`."""

    def __init__(self, pool: AsyncConnectionPool[LogConnection]) -> None:
        self._pool = pool

    async def count(self) -> OpenWorkCounts:
        """Return the amount of open work."""
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
