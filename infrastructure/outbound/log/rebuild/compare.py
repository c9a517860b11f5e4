"""Compares the rows that were built with the live ones, as of a position, while both go on.

Rows as of a position never change: what is written later only begins behind it, or ends a row
behind it, which is still open as of the position. So no lock is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from application.projections.fold import FOREVER
from infrastructure.outbound.log.rebuild.tables import KEYS
from infrastructure.outbound.log.schema.connections import LogConnection

# A row that claims to begin or end where the log has not come yet is none that a writer has made.
_AS_OF = (
    "SELECT {columns}, CASE WHEN to_position > %(at)s"
    " AND to_position <= (SELECT position FROM log_head) THEN {forever} ELSE to_position END"
    " AS to_position, to_position <> {forever} AS has_ended"
    " FROM {table} WHERE (from_position <= %(at)s"
    " OR from_position > (SELECT position FROM log_head)){further}"
)

# A row that has ended may hold no state: it may have ended in one of the tables alone, and earlier
# releases left states in more rows than this one. Those are known by the version that they say.
_OTHER_STATE = (
    "live.state IS DISTINCT FROM built.state"
    " AND NOT (live.state IS NULL AND live.has_ended OR built.state IS NULL AND built.has_ended"
    " AND strpos(live.state, '\"version\":' || live.version || ',') > 0)"
)
_TOUCHED = " AND {key} = ANY(%(keys)s) AND to_position > %(after)s"


async def count_differing_rows(connection: LogConnection, at: int) -> int:
    """How many rows of the live tables are not what the events say, as of position `at`: one for
    each that is missing or too many, two for each that is another (the right and the wrong one).

    The tables are read once each and summed up; only when the sums differ are they put side by
    side, on disk where they do not fit into memory.
    """
    count = 0
    for table, key in KEYS.items():
        columns = await _columns(connection, table)
        sums = [await _sum(connection, columns, one, at) for one in (table, f"{table}_next")]
        if sums[0] != sums[1]:
            count += await _count_by_key(connection, table, key, columns, {"at": at})
    return count


async def count_differing_since(
    connection: LogConnection, after: int, at: int, keys: Mapping[str, Sequence[object]]
) -> int:
    """The same for the rows of these keys, by table, that were true at some time behind `after`."""
    count = 0
    for table, key in KEYS.items():
        if keys[table]:
            columns = await _columns(connection, table)
            values = {"at": at, "after": after, "keys": list(keys[table])}
            further = _TOUCHED.format(key=key)
            count += await _count_by_key(connection, table, key, columns, values, further)
    return count


async def _columns(connection: LogConnection, table: str) -> list[str]:
    cursor = await connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped AND attname <> 'to_position' ORDER BY attnum",
        [table],
    )
    return [row[0] for row in await cursor.fetchall()]


def _as_of(table: str, columns: Sequence[str], further: str = "") -> str:
    return _AS_OF.format(table=table, columns=", ".join(columns), forever=FOREVER, further=further)


async def _sum(connection: LogConnection, columns: Sequence[str], table: str, at: int) -> Any:
    """The number of rows and the sum of their hashes: equal when the rows are, in any order."""
    cursor = await connection.execute(
        f"SELECT count(*), sum(hash_record_extended(ROW({', '.join(columns)}, to_position), 0))"
        f" FROM ({_as_of(table, columns)}) AS t",
        {"at": at},
    )
    return await cursor.fetchone()


async def _count_by_key(
    connection: LogConnection,
    table: str,
    key: str,
    columns: Sequence[str],
    values: dict[str, Any],
    further: str = "",
) -> int:
    whole = [name for name in (*columns, "to_position") if name != "state"]
    live, built = (", ".join(f"{side}.{name}" for name in whole) for side in ("live", "built"))
    cursor = await connection.execute(
        "SELECT coalesce(sum(CASE"
        " WHEN live.to_position IS NULL OR built.to_position IS NULL THEN 1"
        f" WHEN ROW({live}) IS DISTINCT FROM ROW({built}) OR {_OTHER_STATE} THEN 2 ELSE 0 END), 0)"
        f" FROM ({_as_of(table, columns, further)}) AS live"
        f" FULL JOIN ({_as_of(f'{table}_next', columns, further)}) AS built"
        f" USING ({key}, from_position)",
        values,
    )
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])
