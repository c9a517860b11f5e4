"""Comparison of the rebuilt rows with the live ones as of a position, while both keep growing.

Rows as of a position never change. Later writes only begin rows after it, or end rows after it, and
those are still open as of the position. So no lock is needed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from application.projections.fold import FOREVER
from infrastructure.outbound.log.rebuild.tables import KEYS
from infrastructure.outbound.log.schema.connections import LogConnection

# No writer has made a row that begins or ends after the head of the log.
_AS_OF = (
    "SELECT {columns}, CASE WHEN to_position > %(at)s"
    " AND to_position <= (SELECT position FROM log_head) THEN {forever} ELSE to_position END"
    " AS to_position, to_position <> {forever} AS has_ended"
    " FROM {table} WHERE (from_position <= %(at)s"
    " OR from_position > (SELECT position FROM log_head)){further}"
)

# A row that has ended may hold no state: it may have ended in only one of the tables, and earlier
# releases left states in more rows than this one. Those states are accepted if they contain the
# row's version.
_OTHER_STATE = (
    "live.state IS DISTINCT FROM built.state"
    " AND NOT (live.state IS NULL AND live.has_ended OR built.state IS NULL AND built.has_ended"
    " AND strpos(live.state, '\"version\":' || live.version || ',') > 0)"
)
_TOUCHED = " AND {key} = ANY(%(keys)s) AND to_position > %(after)s"


async def count_differing_rows(connection: LogConnection, at: int) -> int:
    """Return the number of live rows that differ from the rebuilt ones as of position `at`. A
    missing or superfluous row counts once; a different one counts twice, as the right and the wrong
    row.

    Each table is read once and summed up. Only if the sums differ are the tables joined, on disk if
    they do not fit into memory.
    """
    count = 0
    for table, key in KEYS.items():
        columns = await _columns(connection, table)
        sums = [await _sum(connection, columns, name, at) for name in (table, f"{table}_next")]
        if sums[0] != sums[1]:
            count += await _count_by_key(connection, table, key, columns, {"at": at})
    return count


async def count_differing_since(
    connection: LogConnection, after: int, at: int, keys: Mapping[str, Sequence[object]]
) -> int:
    """Count like `count_differing_rows` among the rows of these keys, by table, that were current
    at some time after position `after`."""
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
    """Return the number of rows and the sum of their hashes, which are equal for equal rows in any
    order."""
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
