"""The benchmark: `python -m benchmarks.run`. Bounded in time, on a data directory of its own."""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import uvloop
from psycopg import sql

from benchmarks.floor import Copies, Floor, TableRows, rows_of
from benchmarks.load import Act, Connection, life, measure, settled, spawn
from benchmarks.report import Cell, cell, document, table
from benchmarks.server import Server, running_server
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.migrating import migrate

CALLERS = (1, 8, 32)
CALLERS_MAX = 64
SECONDS_MAX = 600.0
FLOOR = "floor: psycopg, one transaction a spawn"
SPAWNS = "spawns accepted over HTTP"
LIVES = "lives over HTTP, request to archive"
FLOOR_DATABASE = "floor"
NOTES = (
    "client: one process beside the server's, its callers are tasks of one uvloop; over HTTP each"
    " has a raw, kept HTTP/1.1 connection, for the floor a database connection",
    "database, server and client share the machine",
    "a spawn that is accepted is executed too: its cells include that work",
    "each spawn has a requester of its own; the runtime plays back at once",
)

Doing = Callable[[Connection], Awaitable[object]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, store; 0 when every call was answered as it should be."""
    options = _options(arguments)
    with tempfile.TemporaryDirectory(prefix="spawnlog-bench-") as folder:
        try:
            cells, machine = _measured(Path(folder), options.seconds, options.callers)
        except (RuntimeError, OSError, psycopg.Error, TimeoutError, ExceptionGroup) as error:
            print(f"the benchmark failed: {_reason(error)}", file=sys.stderr)
            return 1
    print(table(cells, FLOOR))
    for note in NOTES:
        print(f"- {note}")
    output = options.output or Path(".build/benchmarks") / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document(cells, machine, NOTES), indent=2) + "\n", "utf-8")
    print(f"written to {output}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each measurement")
    parser.add_argument("--callers", type=int, nargs="+", default=list(CALLERS))
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    options = parser.parse_args(arguments)
    if not 0 < options.seconds <= SECONDS_MAX:
        parser.error(f"--seconds must be more than 0 and at most {SECONDS_MAX:.0f}")
    if not all(0 < count <= CALLERS_MAX for count in options.callers):
        parser.error(f"--callers must be from 1 to {CALLERS_MAX}")
    return options


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _measured(
    folder: Path, seconds: float, callers: Sequence[int]
) -> tuple[list[Cell], dict[str, Any]]:
    with running_server(folder) as server:
        database = EmbeddedPostgres.start(server.database_home)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                cells = runner.run(_all(server, database.conninfo, seconds, callers))
            return cells, _machine(database.conninfo)
        finally:
            database.close()


async def _all(server: Server, conninfo: str, seconds: float, callers: Sequence[int]) -> list[Cell]:
    """Every cell, those with as many callers side by side. They are measured one kind after the
    other, the spawns last: these leave work behind, and what is measured next waits for its end."""
    copies = Copies(await _one_spawn(server, conninfo))
    own = await _database_for_the_floor(conninfo)
    floors = [await _floor(own, copies, count, seconds) for count in callers]
    lives = [await _over_http(LIVES, life, server, count, seconds) for count in callers]
    spawns = [await _over_http(SPAWNS, spawn, server, count, seconds) for count in callers]
    return [one for cells in zip(floors, spawns, lives, strict=True) for one in cells]


async def _floor(conninfo: str, copies: Copies, callers: int, seconds: float) -> Cell:
    floor = Floor(conninfo, copies, callers)
    await floor.open()
    try:
        acts: list[Act] = [floor.spawn] * callers
        await asyncio.gather(*(act() for act in acts))
        measured = await measure(acts, seconds)
    finally:
        await floor.close()
    return cell(FLOOR, callers, measured.latencies, measured.seconds)


async def _over_http(name: str, doing: Doing, server: Server, callers: int, seconds: float) -> Cell:
    connections = [Connection(server.url, server.token) for _ in range(callers)]
    try:
        for connection in connections:
            await connection.open()
        acts: list[Act] = [partial(doing, connection) for connection in connections]
        await asyncio.gather(*(act() for act in acts))
        measured = await measure(acts, seconds)
        await settled(connections[0])
    finally:
        for connection in connections:
            await connection.close()
    return cell(name, callers, measured.latencies, measured.seconds)


async def _one_spawn(server: Server, conninfo: str) -> tuple[TableRows, ...]:
    """The rows of one real spawn, up to the append with which it was answered."""
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        run_id = UUID(await spawn(connection))
        await settled(connection)
        events = await connection.read(f"/v1/runs/{run_id}/events")
    finally:
        await connection.close()
    queued = next(one for one in events["items"] if one["type"] == "RunQueued")
    return await rows_of(conninfo, run_id, queued["appendLast"])


async def _database_for_the_floor(conninfo: str) -> str:
    """A database with the same schema beside the server's own; gives its URL."""
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        name = sql.Identifier(FLOOR_DATABASE)
        await connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    own = conninfo.replace("/spawnlog?", f"/{FLOOR_DATABASE}?")
    await asyncio.to_thread(migrate, own)
    return own


def _machine(conninfo: str) -> dict[str, Any]:
    """The machine in general terms."""
    with psycopg.connect(conninfo) as connection:
        version = connection.info.server_version
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memoryGiB": round(memory / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "postgresql": f"{version // 10000}.{version % 10000}",
    }


if __name__ == "__main__":
    sys.exit(main())
