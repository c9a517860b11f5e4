"""Appends and spawns beside their floors, by callers, server processes, and commit latency."""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.clients import Clients, Job, Kind
from benchmarks.floor import TableRows
from benchmarks.load import Connection, settled
from benchmarks.real_rows import one_admission, one_message, one_waiting_spawn
from benchmarks.report import Cell, Figure, Timing, timing
from benchmarks.server import PATIENT, Server, running_server
from benchmarks.slow_commits import DELAY_MS, commit_ms, slowed_commits
from infrastructure.outbound.embedded_postgres.server import EmbeddedPostgres
from infrastructure.outbound.log.schema.migrate import migrate

APPENDS = "appends (admissions)"
SPAWNS = "spawns over HTTP, accepted"
EXECUTED = "spawns over HTTP, executed meanwhile"
LIVES = "lives over HTTP, request to archive"
MESSAGES = "messages over HTTP, executed meanwhile"
TALKING_CALLERS_MAX = 32
PLAIN, SLOWED = "plain", f"+{DELAY_MS} ms"


@dataclass(frozen=True, slots=True)
class Size:
    """Duration of each cell, numbers of callers, and whether two servers are measured, too."""

    seconds: float
    callers: tuple[int, ...]
    processes: tuple[int, ...]
    slowed: bool


@dataclass(slots=True)
class Matrix:
    """Measurements on servers of their own."""

    clients: Clients
    size: Size
    servers: list[Server]
    conninfo: str
    floor: str
    log: str
    spawn_rows: tuple[TableRows, ...]
    admission_rows: tuple[TableRows, ...]
    cells: list[Cell] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def measure(self, commits: str) -> None:
        """Measure every cell with the running servers.

        Spawns come last, because the next measurement must wait for the work that they leave.
        """
        for callers in self.size.callers:
            self._measure("appends", APPENDS, self.admission_rows, commits, callers)
        if commits == PLAIN and len(self.servers) == 1:
            for callers in self.size.callers:
                self._measure("lives", LIVES, (), commits, callers)
        for callers in self.size.callers:
            self._measure("spawns", EXECUTED, self.spawn_rows, commits, callers)

    def measure_waiting(self, patient: Sequence[Server], commits: str) -> None:
        """Measure spawns whose runs wait in the lane, as with slow agents."""
        own, self.servers = self.servers, list(patient)
        for callers in self.size.callers:
            self._measure("spawns", SPAWNS, self.spawn_rows, commits, callers, settle=False)
        self.servers = own

    def measure_talking(self, talking: Server, rows: tuple[TableRows, ...]) -> None:
        """Measure messages that continue sessions, and their runs."""
        own, self.servers = self.servers, [talking]
        for callers in self.size.callers:
            if callers <= TALKING_CALLERS_MAX:
                self._measure("messages", MESSAGES, rows, PLAIN, callers, settle=False)
        self.servers = own

    def _measure(
        self,
        kind: Kind,
        name: str,
        rows: tuple[TableRows, ...],
        commits: str,
        callers: int,
        *,
        settle: bool = True,
    ) -> None:
        processes = len(self.servers)
        if callers < processes:
            return
        floor = self._timed("floor", callers, rows) if rows else None
        measured = self._timed(kind, callers, ())
        if settle and kind in ("spawns", "lives"):
            asyncio.run(_settled(self.servers[0]))
        cell = Cell(name, commits, processes, callers, measured, floor)
        self.cells.append(cell)
        print(
            f"{name}, {commits} commits, {processes} x {callers}: {measured.per_second:.0f}/s",
            file=sys.stderr,
        )

    def _timed(self, kind: Kind, callers: int, rows: tuple[TableRows, ...]) -> Timing:
        """Measure with callers spread over as many processes as there are servers."""
        processes = len(self.servers)
        shares = [callers // processes + (n < callers % processes) for n in range(processes)]
        jobs = [
            Job(
                kind=kind,
                number=next(self._numbers),
                callers=share,
                seconds=self.size.seconds,
                urls=tuple(server.url for server in self.servers[place:] + self.servers[:place]),
                token=self.servers[0].token,
                conninfo=self.floor if kind == "floor" else self.log,
                rows=rows,
            )
            for place, share in enumerate(shares)
        ]
        return timing(self.clients.measured(jobs))


def measured_matrix(folder: Path, size: Size) -> tuple[list[Cell], list[Figure]]:
    """Return all cells, and the figures of the servers that they were measured on."""
    with ExitStack() as opened:
        server = opened.enter_context(running_server(folder))
        database = EmbeddedPostgres.start(server.database_home)
        opened.callback(database.close)
        conninfo = database.conninfo
        spawn_rows = _waiting_rows(folder / "waiting")
        floor, log = (_database(conninfo, name) for name in ("floor", "appends"))
        admission_rows = asyncio.run(one_admission(log))
        clients = opened.enter_context(Clients())
        matrix = Matrix(clients, size, [server], conninfo, floor, log, spawn_rows, admission_rows)
        if 1 in size.processes:
            matrix.measure(PLAIN)
        figures = _memory(server, matrix.cells)
        if 2 in size.processes:
            with running_server(folder, "second") as second:
                matrix.servers = [server, second]
                matrix.measure(PLAIN)
                if size.slowed:
                    with slowed_commits(conninfo):
                        matrix.measure(SLOWED)
                matrix.servers = [server]
        _measure_waiting(folder / "patient", matrix)
        if 1 in size.processes:
            _measure_talking(folder / "talking", matrix)
        figures.append(Figure("a lone commit", "ms", round(commit_ms(floor), 2)))
        if size.slowed:
            with slowed_commits(conninfo):
                figures.append(Figure(f"a lone commit, {SLOWED}", "ms", round(commit_ms(floor), 2)))
                if 1 in size.processes:
                    matrix.measure(SLOWED)
        return sorted(matrix.cells, key=_place), figures


def _waiting_rows(folder: Path) -> tuple[TableRows, ...]:
    """Return the rows of a spawn whose run waits, from a server of its own."""
    folder.mkdir()
    with running_server(folder, configuration=PATIENT) as server:
        database = EmbeddedPostgres.start(server.database_home)
        try:
            return asyncio.run(one_waiting_spawn(server, database.conninfo))
        finally:
            database.close()


def _measure_waiting(folder: Path, matrix: Matrix) -> None:
    """Measure waiting spawns on separate servers, because nothing there ever ends. The floor stays
    the same.
    """
    folder.mkdir()
    for processes in matrix.size.processes:
        for commits in (PLAIN, SLOWED) if matrix.size.slowed else (PLAIN,):
            with ExitStack() as opened:
                data = folder / f"{processes}-{commits.strip('+').replace(' ', '')}"
                data.mkdir()
                patient = [
                    opened.enter_context(running_server(data, str(number), PATIENT))
                    for number in range(processes)
                ]
                database = EmbeddedPostgres.start(patient[0].database_home)
                opened.callback(database.close)
                if commits == SLOWED:
                    for conninfo in (matrix.conninfo, database.conninfo):
                        opened.enter_context(slowed_commits(conninfo))
                matrix.measure_waiting(patient, commits)


def _measure_talking(folder: Path, matrix: Matrix) -> None:
    """Measure messages on a separate server, whose sessions stay open."""
    folder.mkdir()
    with running_server(folder) as server:
        database = EmbeddedPostgres.start(server.database_home)
        try:
            rows = asyncio.run(one_message(server, database.conninfo))
            matrix.measure_talking(server, rows)
        finally:
            database.close()


def _place(cell: Cell) -> tuple[bool, int, int, int]:
    names = (APPENDS, SPAWNS, EXECUTED, MESSAGES, LIVES)
    return cell.commits == SLOWED, names.index(cell.name), cell.processes, cell.callers


def _memory(server: Server, cells: Sequence[Cell]) -> list[Figure]:
    found = server.memory_mib()
    if found is None:
        why = "this system does not tell"
        return [Figure("memory of a server process", "MiB", None, why)]
    runs = sum(cell.timing.done for cell in cells if cell.name in (EXECUTED, LIVES))
    note = f"after {runs} runs"
    return [
        Figure("memory of a server process", "MiB", round(found[0], 1), note),
        Figure("memory of a server process, peak", "MiB", round(found[1], 1)),
    ]


async def _settled(server: Server) -> None:
    connection = Connection(server.url, server.token)
    await connection.open()
    try:
        await settled(connection)
    finally:
        await connection.close()


def _database(conninfo: str, name: str) -> str:
    """Create a database with the same schema on the server. Return its URL."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    own = conninfo.replace("/spawnlog?", f"/{name}?")
    migrate(own)
    return own
