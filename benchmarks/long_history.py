"""Operations on a long log, and their cost: following, streaming, rebuild, and verification."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from benchmarks.appending import opened_log
from benchmarks.generate import generate
from benchmarks.load import Connection
from benchmarks.report import Figure
from benchmarks.server import COMMAND, own_environment, running_server
from benchmarks.waking import measured_waking
from infrastructure.server.database import open_database

FOLLOW_EVENTS_MAX = 200_000
FOLLOW_SECONDS_MAX = 300.0
COMMAND_SECONDS_MAX = 900.0
SEED = 1
TABLES = ("events", "runs", "sessions", "contents", "content_keys", "commits")
SIZES = (
    "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s)"
)


def measured_history(
    folder: Path, events: int, processes: int, *, just_made: bool = False
) -> list[Figure]:
    """Return the figures of a generated history of this many events, which is stored below the
    folder.

    With `just_made`, return only the figures of its generation.
    """
    folder.mkdir()
    data = folder / "data"
    data.mkdir(mode=0o711)
    database = open_database(None, data / "postgres")
    try:
        done = generate(database.conninfo, events=events, seed=SEED, processes=processes)
        # A record that has grown has been vacuumed on the way: what came all at once is not, and
        # the first to do it would be in the way of what is measured.
        with psycopg.connect(database.conninfo, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
        figures = [
            Figure("events of the history", "events", done.events),
            _rate("generated", done.events, done.seconds, f"by {processes} processes"),
            *_sizes(database.conninfo, events),
        ]
        if just_made:
            return figures
        figures += [
            asyncio.run(_followed(database.conninfo, min(events, FOLLOW_EVENTS_MAX))),
            _commanded("rebuild", data, events),
            _commanded("verify", data, events),
            *measured_copies(folder, data, events),
            *asyncio.run(measured_waking(database.conninfo)),
        ]
        with running_server(folder) as server:
            streamed = min(events, FOLLOW_EVENTS_MAX)
            figures.append(asyncio.run(_streamed(server.url, server.token, streamed)))
            memory = server.memory_mib()
            if memory is not None:
                note = f"after streaming {streamed} events"
                name = "memory of a server process on the history"
                figures.append(Figure(name, "MiB", round(memory[0], 1), note))
        return figures
    finally:
        database.close()


def _rate(name: str, events: int, seconds: float, note: str = "") -> Figure:
    return Figure(name, "events/s", round(events / seconds, 1), note)


def _sizes(conninfo: str, events: int) -> list[Figure]:
    """Return the bytes on disk per event, including indexes."""
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute(SIZES, [list(TABLES)]).fetchall()
        found: dict[str, int] = dict(rows)
    total = Figure("on disk", "bytes an event", round(sum(found.values()) / events, 1))
    each = [
        Figure(f"on disk: {table}", "bytes an event", round(found[table] / events, 1))
        for table in TABLES
    ]
    return [total, *each]


async def _followed(conninfo: str, events: int) -> Figure:
    """Measure the tail of a server process, from the first event."""
    async with opened_log(conninfo) as log:
        began = time.perf_counter()
        async with asyncio.timeout(FOLLOW_SECONDS_MAX):
            async for page in log.tail.follow(after=0):
                if page[-1].envelope.position >= events:
                    break
        return _rate("tailed", events, time.perf_counter() - began)


async def _streamed(url: str, token: str, events: int) -> Figure:
    """Measure one reader of this many events as server-sent events."""
    connection = Connection(url, token)
    await connection.open()
    try:
        async with asyncio.timeout(FOLLOW_SECONDS_MAX):
            began = time.perf_counter()
            received = await connection.stream("/v1/events?after=0", events)
            seconds = time.perf_counter() - began
    finally:
        await connection.close()
    return _rate("streamed over HTTP to one reader", received, seconds)


def _commanded(name: str, data: Path, events: int) -> Figure:
    """Measure a command on the log by wall-clock time, including its start."""
    ask = _asked(name, "--help")
    if ask() != 0:
        return Figure(f"{name}, as a command", "events/s", None, f"no command: log {name}")
    began = time.perf_counter()
    status = _asked(name, "--data-dir", str(data))()
    seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"spawnlog log {name} ended with {status} on a generated history")
    return _rate(f"{name}, as a command", events, seconds)


def measured_copies(folder: Path, data: Path, events: int) -> list[Figure]:
    """Measure an export of the log with all texts, and the import of the file."""
    file, directory = folder / "log.ndjson", folder / "imported"
    directory.mkdir(mode=0o711)
    # Made beforehand, because the creation of a database is not measured.
    open_database(None, directory / "postgres").close()
    whole = ("--out", str(file), "--contents", "--transcripts", "--data-dir", str(data))
    figures = [
        _timed("export, as a command", events, "export", *whole),
        _timed("verification of the file, as a command", events, "verify", str(file)),
        _timed("import, as a command", events, "import", str(file), "--data-dir", str(directory)),
    ]
    size = Figure("in the file", "bytes an event", round(file.stat().st_size / events, 1))
    file.unlink()
    return [*figures, size]


def _timed(measured: str, events: int, name: str, *arguments: str) -> Figure:
    began = time.perf_counter()
    status = _asked(name, *arguments)()
    seconds = time.perf_counter() - began
    if status != 0:
        raise RuntimeError(f"spawnlog log {name} ended with {status} on a generated history")
    return _rate(measured, events, seconds)


def _asked(name: str, *arguments: str) -> Callable[[], int]:
    def ask() -> int:
        return subprocess.run(
            [sys.executable, *COMMAND, "log", name, *arguments],
            env=own_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        ).returncode

    return ask
