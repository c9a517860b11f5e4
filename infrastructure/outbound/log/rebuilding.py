"""Makes the rows of the projections anew from the events, and compares them with what was there."""

import time
from dataclasses import dataclass

from application.projections import run_rows, session_rows
from application.projections.fold import FOREVER, Changes, Fold
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.log.format import format_of, must_know
from infrastructure.outbound.log.loading import LOCK
from infrastructure.outbound.log.mapper import EventMapper
from infrastructure.outbound.log.reading import read_events
from infrastructure.outbound.log.storing import store_rows

PAGE_EVENTS = 2_000
TABLES = ("runs", "sessions")
VERSIONS = {"runs": run_rows.VERSION, "sessions": session_rows.VERSION}


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """How much was read and written; `differing` counts rows that were not what they should be."""

    events: int
    runs: int
    sessions: int
    differing: int
    seconds: float


async def rebuild(connection: Connection) -> Rebuilt:
    """Rebuild in one transaction under the append lock: readers see the old rows until the end,
    writers wait."""
    began = time.monotonic()
    await connection.execute("BEGIN")
    try:
        await connection.execute(
            "SET LOCAL statement_timeout = 0;"
            " SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
        )
        await connection.execute(LOCK)
        must_know(await format_of(connection))
        for table in TABLES:
            await connection.execute(
                f"CREATE TEMPORARY TABLE old_{table} ON COMMIT DROP AS TABLE {table}"
            )
            await connection.execute(f"DELETE FROM {table}")
        events = await _fold_all(connection)
        differing = sum([await _differing(connection, table) for table in TABLES])
        counts = [await _count_open(connection, table) for table in TABLES]
        await note_versions(connection)
        await connection.execute("COMMIT")
    except BaseException:
        await connection.execute("ROLLBACK")
        raise
    return Rebuilt(events, counts[0], counts[1], differing, time.monotonic() - began)


async def _fold_all(connection: Connection) -> int:
    mapper = EventMapper()
    fold = Fold((), ())
    position = 0
    while page := await read_events(connection, mapper, after=position, limit=PAGE_EVENTS):
        for recorded in page:
            envelope = recorded.envelope
            fold.apply(envelope.stream, recorded.event, envelope.stamp)
        await store_rows(connection, fold.run_rows, fold.session_rows)
        fold.run_rows, fold.session_rows = Changes(), Changes()
        position = page[-1].envelope.position
    return position


async def _differing(connection: Connection, table: str) -> int:
    row = await (
        await connection.execute(
            f"SELECT (SELECT count(*) FROM (TABLE {table} EXCEPT ALL TABLE old_{table}) AS a)"
            f" + (SELECT count(*) FROM (TABLE old_{table} EXCEPT ALL TABLE {table}) AS b)"
        )
    ).fetchone()
    assert row is not None
    return int(row[0])


async def _count_open(connection: Connection, table: str) -> int:
    row = await (
        await connection.execute(f"SELECT count(*) FROM {table} WHERE to_position = {FOREVER}")
    ).fetchone()
    assert row is not None
    return int(row[0])


async def note_versions(connection: Connection) -> None:
    """Write down which version of each projection the rows are of."""
    for name, version in VERSIONS.items():
        await connection.execute(
            "INSERT INTO projections (name, version) VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET version = excluded.version",
            [name, version],
        )


async def stale_projections(connection: Connection) -> tuple[str, ...]:
    """Projections whose rows are of another version than this program makes."""
    rows = await (await connection.execute("SELECT name, version FROM projections")).fetchall()
    found = {row[0]: row[1] for row in rows}
    if not found:
        # A database that was just made: its rows, none so far, are of this version.
        await note_versions(connection)
        return ()
    return tuple(name for name, version in VERSIONS.items() if found.get(name) != version)
