"""Cost of a server with a long history, with many finished runs, or with programs: idle, per life,
per run, and in memory.
"""

import asyncio
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.clients import Clients, Job
from benchmarks.load import AT_WORK, Connection, settled
from benchmarks.processor import Spent, spent, used, used_ms
from benchmarks.report import Figure, timing
from benchmarks.server import CONFIGURATION, Server, running_server

QUIET_SHARE = 0.05
QUIET_SECONDS_MAX = 300.0
LOOK_SECONDS = 2.0
ROUNDS = 3
CALLERS = (1, 32)
MEMORY_CALLERS = 64
MEMORY_SAMPLES = 10
MEMORY_SECONDS_MAX = 3_600.0
PROGRAM_CALLERS = (8, 32)
PROGRAMS: Mapping[str, Any] = {
    "agents": {
        "defaults": {"subagents": {"maxConcurrent": 64}},
        "list": [{"id": "main", "runtime": {"type": "command", "command": ["/bin/true"]}}],
    },
    "spawnlog": {"drainSeconds": 1},
}
"""Configuration in which each run is a process that ends at once."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Size of the measurement.

    Attributes:
        idle_seconds: Time for which an idle server is watched.
        seconds: Duration of each cell of lives.
        memory_runs: Number of runs after which memory is read for the last time; 0 omits it.
    """

    idle_seconds: float
    seconds: float
    memory_runs: int


class Lives(NamedTuple):
    """Lives of one cell: number per second, and milliseconds of a core for each, if known."""

    per_second: float
    p50_ms: float
    server_ms: float | None
    postgres_ms: float | None


def measured_standing(folder: Path, history: Path | None, size: Standing) -> list[Figure]:
    """Return the figures. `history` is the data directory of a long history; without it, only the
    empty log is measured.
    """
    folder.mkdir(mode=0o711)
    numbers = count(1)
    with Clients() as clients:
        figures = _beside(folder / "empty", history, size, clients, numbers)
        with _own_server(folder / "programs", PROGRAMS) as server:
            for callers in PROGRAM_CALLERS:
                cell = _lives(clients, server, callers, size.seconds, numbers)
                figures += _cell_figures(f"process runs, {callers} callers", cell, "runs/s", "run")
        if size.memory_runs:
            with _own_server(folder / "memory", CONFIGURATION) as server:
                figures += _memory(clients, server, size.memory_runs, size.seconds, numbers)
    shutil.rmtree(folder)
    return figures


def _beside(
    empty: Path, history: Path | None, size: Standing, clients: Clients, numbers: "count[int]"
) -> list[Figure]:
    """Measure an empty log and a long one in turns, each on its own server."""
    figures: list[Figure] = []
    with _own_server(empty, CONFIGURATION) as young:
        servers = {"empty": young}
        if history is not None:
            with running_server(history) as old:
                servers["long"] = old
                figures += _idle_and_lives(servers, size, clients, numbers)
        else:
            figures += _idle_and_lives(servers, size, clients, numbers)
    return figures


def _idle_and_lives(
    servers: Mapping[str, Server], size: Standing, clients: Clients, numbers: "count[int]"
) -> list[Figure]:
    figures: list[Figure] = []
    for name, server in servers.items():
        asyncio.run(_settled(server, AT_WORK))
        waited = _quiet(server)
        found = _used(server, size.idle_seconds)
        note = f"over {size.idle_seconds:.0f} s, after {waited:.0f} s"
        figures += [
            _share(f"idle, {name} record: server", found and found.server, size, note),
            _share(f"idle, {name} record: PostgreSQL", found and found.postgres, size, note),
        ]
    for callers in CALLERS:
        cells: dict[str, list[Lives]] = {name: [] for name in servers}
        for _ in range(ROUNDS):
            for name, server in servers.items():
                cells[name].append(_lives(clients, server, callers, size.seconds, numbers))
        for name, those in cells.items():
            title = f"lives, {callers} callers, {name} record"
            figures += _cell_figures(title, _median(those), "lives/s", "life")
        if "long" in cells:
            ratio = _ratio(cells)
            note = "long : empty, PostgreSQL's milliseconds a life"
            figures.append(Figure(f"lives, {callers} callers", "times", ratio, note))
    return figures


def _ratio(cells: Mapping[str, Sequence[Lives]]) -> float | None:
    old, young = (_median(cells[name]).postgres_ms for name in ("long", "empty"))
    return round(old / young, 2) if old and young else None


@contextmanager
def _own_server(folder: Path, configuration: Mapping[str, Any]) -> Iterator[Server]:
    folder.mkdir(mode=0o711)
    with running_server(folder, configuration=configuration) as server:
        yield server


def _used(server: Server, seconds: float) -> Spent | None:
    """Return the processor time that is used in this time."""
    before = spent(server)
    time.sleep(seconds)
    return used(before, spent(server))


def _quiet(server: Server) -> float:
    """Wait until a server has done its due work after the start. Return the seconds that it
    took.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < QUIET_SECONDS_MAX:
        busy = _used(server, LOOK_SECONDS)
        if busy is None or sum(busy) < QUIET_SHARE * LOOK_SECONDS:
            break
    return waited


def _lives(
    clients: Clients, server: Server, callers: int, seconds: float, numbers: "count[int]"
) -> Lives:
    job = Job("lives", next(numbers), callers, seconds, (server.url,), server.token)
    before = spent(server)
    measured = timing(clients.measured([job]))
    # Each caller has lived one life before the clock was started.
    each = used_ms(before, spent(server), measured.done + callers)
    parts = (None, None) if each is None else (round(each.server, 2), round(each.postgres, 2))
    return Lives(measured.per_second, measured.p50_ms, *parts)


def _median(cells: Sequence[Lives]) -> Lives:
    columns = zip(*cells, strict=True)
    return Lives(*(None if None in column else median(column) for column in columns))  # type: ignore[arg-type]


def _cell_figures(name: str, found: Lives, rate: str, each: str) -> list[Figure]:
    note = "" if found.server_ms is not None else "this system does not tell"
    return [
        Figure(name, rate, found.per_second, f"p50 {found.p50_ms} ms"),
        Figure(f"{name}: server", f"ms of a core a {each}", found.server_ms, note),
        Figure(f"{name}: PostgreSQL", f"ms of a core a {each}", found.postgres_ms, note),
    ]


def _share(name: str, used: float | None, size: Standing, note: str) -> Figure:
    if used is None:
        return Figure(name, "% of a core", None, "this system does not tell")
    return Figure(name, "% of a core", round(100 * used / size.idle_seconds, 2), note)


def _memory(
    clients: Clients, server: Server, runs: int, seconds: float, numbers: "count[int]"
) -> list[Figure]:
    """Measure resident memory after each tenth of the runs, all of them archived."""
    samples: list[tuple[int, float]] = []
    done, began = 0, time.monotonic()
    while done < runs and time.monotonic() - began < MEMORY_SECONDS_MAX:
        job = Job("lives", next(numbers), MEMORY_CALLERS, seconds, (server.url,), server.token)
        done += len(clients.measured([job]).latencies) + MEMORY_CALLERS
        found = server.memory_mib()
        if found is None:
            return [Figure("memory after runs", "MiB", None, "this system does not tell")]
        if done >= runs * (len(samples) + 1) / MEMORY_SAMPLES:
            samples.append((done, found[0]))
    asyncio.run(_settled(server, (*AT_WORK, "announced")))
    figures = [
        Figure(f"memory after {number} runs", "MiB", round(mib, 1)) for number, mib in samples
    ]
    growth = growth_bytes(samples)
    note = "over the second half of the runs"
    return [*figures, Figure("memory: growth", "bytes a run", growth, note)]


def growth_bytes(samples: Sequence[tuple[int, float]]) -> float | None:
    """Return the growth of memory in bytes per run over the second half of the samples (runs,
    MiB).
    """
    half = samples[len(samples) // 2 :]
    if len(half) < 2:
        return None
    (first, low), (last, high) = half[0], half[-1]
    return round((high - low) * 2**20 / (last - first), 1)


async def _settled(server: Server, stages: Sequence[str]) -> None:
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        await settled(connection, stages)
    finally:
        await connection.close()
