"""The new tables that are built beside the live ones, and the swap of the two.

`runs_next` is like `runs`, and so on for each projection, but without the indexes, which are built
after the bulk is loaded. Until then, the fold needs only one index: of the current rows by key.
`rebuilding` stores the progress of each part of the streams.
"""

from dataclasses import dataclass

from psycopg import sql

from application.log.envelope import WRITER_VERSION
from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER
from infrastructure.outbound.log.read.fold_input import StreamPart
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.projection_versions import VERSIONS, note_versions

KEYS = {projection.name: projection.key for projection in PROJECTIONS}
"""The live tables, each with the key of its aggregates."""

LIVE = ", ".join(KEYS)
_NEXT = ", ".join(f"{table}_next" for table in KEYS)
_CLASSES = ", ".join(f"'{table}'::regclass" for table in KEYS)


_LIKE = (
    "CREATE TABLE {next} (LIKE {live} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE"
    " INCLUDING COMPRESSION INCLUDING GENERATED INCLUDING STATISTICS INCLUDING COMMENTS)"
    " WITH ({options})"
)

# No autovacuum while only the rebuild uses the tables.
_QUIET = "autovacuum_enabled"


@dataclass(frozen=True, slots=True)
class Index:
    """An index of a live table.

    `building` is its name on the new table, `how` the end of its definition, and `constraint` the
    keyword (`PRIMARY KEY`, `UNIQUE`) if it backs a constraint.
    """

    table: str
    name: str
    building: str
    is_unique: bool
    how: str
    constraint: str | None


async def shape(connection: LogConnection) -> str:
    """Return the facts that the new tables depend on: release, versions, columns and indexes. A
    rebuild begun for another shape cannot be resumed."""
    cursor = await connection.execute(
        "SELECT string_agg(attrelid::regclass || '.' || attname || ' '"
        " || format_type(atttypid, atttypmod), ', ' ORDER BY attrelid::regclass::text, attnum)"
        f" FROM pg_attribute WHERE attrelid IN ({_CLASSES})"
        " AND attnum > 0 AND NOT attisdropped"
    )
    row = await cursor.fetchone()
    assert row is not None
    indexes = [f"{index.name}{index.how}" for index in await indexes_of(connection)]
    return "; ".join([WRITER_VERSION, str(VERSIONS), row[0], *indexes])


async def positions(connection: LogConnection, expected: str) -> dict[StreamPart, int] | None:
    """Return the progress of each part of an unfinished rebuild of this shape, or None if there is
    no such rebuild."""
    found = await connection.execute("SELECT to_regclass('rebuilding') IS NOT NULL")
    if (await found.fetchone()) != (True,):
        return None
    cursor = await connection.execute(
        "SELECT part, position, shape = %s AND position <= (SELECT position FROM log_head)"
        " FROM rebuilding ORDER BY part",
        [expected],
    )
    rows = await cursor.fetchall()
    if not all(row[2] for row in rows):
        return None
    return {StreamPart(row[0], len(rows)): row[1] for row in rows} or None


async def create(connection: LogConnection, expected: str, parts: int) -> dict[StreamPart, int]:
    """Create empty new tables, dropping those of an earlier rebuild."""
    async with connection.transaction():
        await drop(connection)
        for table, key in KEYS.items():
            await _create_like(connection, table)
            await connection.execute(
                f"CREATE UNIQUE INDEX {table}_next_key ON {table}_next ({key})"
                f" WHERE to_position = {FOREVER}"
            )
        await connection.execute(
            "CREATE TABLE rebuilding (part integer PRIMARY KEY, position bigint NOT NULL,"
            " shape text NOT NULL)"
        )
        await connection.execute(
            "INSERT INTO rebuilding SELECT part, 0, %s FROM generate_series(0, %s) AS part",
            [expected, parts - 1],
        )
    return {StreamPart(number, parts): 0 for number in range(parts)}


async def drop(connection: LogConnection) -> None:
    """Drop the new tables."""
    await connection.execute(f"DROP TABLE IF EXISTS {_NEXT}, rebuilding")


async def _create_like(connection: LogConnection, table: str) -> None:
    options = [sql.SQL("{}=off").format(sql.Identifier(_QUIET))]
    options += [
        sql.SQL("{}={}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in (await _options(connection, table)).items()
        if name != _QUIET
    ]
    next_table = sql.Identifier(f"{table}_next")
    await connection.execute(
        sql.SQL(_LIKE).format(
            next=next_table, live=sql.Identifier(table), options=sql.SQL(", ").join(options)
        )
    )
    owner = await (
        await connection.execute(
            "SELECT rolname FROM pg_class JOIN pg_roles ON pg_roles.oid = relowner"
            " WHERE pg_class.oid = %s::regclass AND rolname <> current_user",
            [table],
        )
    ).fetchone()
    if owner is not None:
        await connection.execute(
            sql.SQL("ALTER TABLE {} OWNER TO {}").format(next_table, sql.Identifier(owner[0]))
        )
    cursor = await connection.execute(
        "SELECT format('GRANT %%s ON %%I TO %%s', privilege_type, %s::text,"
        " CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)"
        " FROM pg_class, aclexplode(relacl) WHERE oid = %s::regclass AND grantee <> relowner",
        [f"{table}_next", table],
    )
    for row in await cursor.fetchall():
        await connection.execute(row[0])


async def _options(connection: LogConnection, table: str) -> dict[str, str]:
    cursor = await connection.execute(
        "SELECT option_name, option_value FROM pg_class, pg_options_to_table(reloptions)"
        " WHERE oid = %s::regclass",
        [table],
    )
    return {row[0]: row[1] for row in await cursor.fetchall()}


async def indexes_of(connection: LogConnection) -> list[Index]:
    """Return the indexes of the live tables."""
    cursor = await connection.execute(
        "SELECT i.relname, pg_get_indexdef(i.oid), x.indisunique, c.contype::text,"
        " x.indrelid::regclass::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid"
        " LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype IN ('p', 'u')"
        f" WHERE x.indrelid IN ({_CLASSES}) AND x.indisvalid"
        " ORDER BY i.relname"
    )
    words = {"p": "PRIMARY KEY", "u": "UNIQUE"}
    return [
        Index(
            table=table.rpartition(".")[2],
            name=name,
            building=f"{table.rpartition('.')[2]}_next_{number}",
            is_unique=unique,
            how=definition[definition.index(" USING ") :],
            constraint=words.get(kind),
        )
        for number, (name, definition, unique, kind, table) in enumerate(await cursor.fetchall())
    ]


async def build(connection: LogConnection, index: Index) -> None:
    """Build an index of a new table, unless it exists."""
    unique = "UNIQUE " if index.is_unique else ""
    await connection.execute(
        f"CREATE {unique}INDEX IF NOT EXISTS {index.building} ON {index.table}_next{index.how}"
    )


async def analyze(connection: LogConnection) -> None:
    """Collect planner statistics of the new tables before their first query."""
    # A third of the default sample, which would take half as long as the indexes; every query uses
    # an index anyway.
    await connection.execute("SET default_statistics_target = 30")
    await connection.execute(f"ANALYZE {_NEXT}")


async def exchange(connection: LogConnection, indexes: list[Index]) -> None:
    """Replace the live tables with the new ones, under their names. Call it in a transaction that
    holds the append lock and exclusive locks on the live tables."""
    for table in KEYS:
        was_quiet = _QUIET in await _options(connection, table)
        await connection.execute(f"DROP TABLE {table}")
        await connection.execute(f"ALTER TABLE {table}_next RENAME TO {table}")
        await connection.execute(f"DROP INDEX {table}_next_key")
        if not was_quiet:
            await connection.execute(f"ALTER TABLE {table} RESET ({_QUIET})")
    for index in indexes:
        name = sql.Identifier(index.name)
        if index.constraint is not None:
            statement = sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} {} USING INDEX {}").format(
                sql.Identifier(index.table),
                name,
                sql.SQL(index.constraint),
                sql.Identifier(index.building),
            )
        else:
            statement = sql.SQL("ALTER INDEX {} RENAME TO {}").format(
                sql.Identifier(index.building), name
            )
        await connection.execute(statement)
    await connection.execute("DROP TABLE rebuilding")
    await note_versions(connection)
