"""The benchmark: `python -m benchmarks.run`. Bounded in time, on a data directory of its own."""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from benchmarks.floor import Floor, template_of
from benchmarks.load import Connection, life, measure, spawn
from benchmarks.report import Cell, cell, document, table
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.migrating import migrate

CALLERS = (1, 8, 32)
FLOOR = "floor: psycopg, one transaction a spawn"
SPAWNS = "spawns accepted over HTTP"
LIVES = "lives over HTTP, request to archive"
START_SECONDS_MAX = 60
SERVE = ("-m", "infrastructure.inbound.command_line.main", "serve", "--port", "0")
NOTES = (
    "every process shares the machine: the database, the server, and this program, whose callers"
    " are tasks of one asyncio loop with raw kept HTTP/1.1 connections",
    "a spawn that is accepted is executed too: the spawns' cells include that work",
    "each spawn has a requester of its own; the runtime plays back at once",
)
CONFIGURATION = {
    "agents": {
        "defaults": {"subagents": {"maxConcurrent": 64}},
        "list": [{"id": "main", "runtime": {"type": "scripted", "result": "done"}}],
    }
}


def main() -> int:
    """Measure, print, store; 0 when every call was answered as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each measurement")
    parser.add_argument("--callers", type=int, nargs="+", default=list(CALLERS))
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="spawnlog-bench-") as folder:
        cells, machine = _measured(Path(folder), options.seconds, tuple(options.callers))
    print(table(cells, FLOOR))
    for note in NOTES:
        print(f"- {note}")
    output = options.output or Path(".build/benchmarks") / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document(cells, machine, NOTES), indent=2) + "\n", "utf-8")
    print(f"written to {output}")
    return 0


def _measured(
    folder: Path, seconds: float, callers: tuple[int, ...]
) -> tuple[list[Cell], dict[str, Any]]:
    data = folder / "data"
    config = folder / "spawnlog.json5"
    config.write_text(json.dumps(CONFIGURATION), "utf-8")
    process = subprocess.Popen(
        [sys.executable, *SERVE, "--data-dir", str(data), "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = _ready(process)
        token = (data / "admin-token").read_text("utf-8").strip()
        server = EmbeddedPostgres.start(data / "postgres")
        try:
            cells = asyncio.run(_all(url, token, server.conninfo, seconds, callers))
            return cells, _machine(server.conninfo)
        finally:
            server.close()
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def _ready(process: "subprocess.Popen[str]") -> str:
    lines: list[str] = []
    stdout = process.stdout
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(START_SECONDS_MAX)
    if not lines or not lines[0].startswith("spawnlog ready on "):
        raise RuntimeError(f"the server did not start: {lines}")
    return lines[0].removeprefix("spawnlog ready on ").strip()


async def _all(
    url: str, token: str, conninfo: str, seconds: float, callers: tuple[int, ...]
) -> list[Cell]:
    floor = await _floor(url, token, conninfo)
    cells: list[Cell] = []
    try:
        for count in callers:
            cells.append(cell(FLOOR, count, *await measure(floor.spawn, count, seconds)))
            for name, act in ((SPAWNS, spawn), (LIVES, life)):
                cells.append(await _over_http(name, act, count, seconds, url, token))
    finally:
        await floor.close()
    return cells


async def _over_http(
    name: str,
    act: Callable[[Connection], Awaitable[object]],
    callers: int,
    seconds: float,
    url: str,
    token: str,
) -> Cell:
    connections: list[Connection] = []

    async def make() -> Callable[[], Awaitable[object]]:
        connection = Connection(url, token)
        await connection.open()
        connections.append(connection)
        await act(connection)
        return partial(act, connection)

    try:
        return cell(name, callers, *await measure(None, callers, seconds, make))
    finally:
        for connection in connections:
            await connection.close()


async def _floor(url: str, token: str, conninfo: str) -> Floor:
    """A database of its own with the same schema, and the rows of one real spawn to copy."""
    connection = Connection(url, token)
    await connection.open()
    run_id = UUID(await spawn(connection))
    _, answer = await connection.ask("GET", f"/v1/runs/{run_id}/events")
    queued = next(one for one in json.loads(answer)["items"] if one["type"] == "RunQueued")
    await connection.close()
    template = await template_of(conninfo, run_id, queued["position"])
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as database:
        await database.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("floor")))
    own = conninfo.replace("/spawnlog?", "/floor?")
    await asyncio.to_thread(migrate, own)
    floor = Floor(own, template)
    await floor.open()
    await floor.spawn()
    return floor


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
