"""Contenders of the comparison: how each is started, and how it lives a life."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any, Literal, NamedTuple

import psycopg
import uvloop
from psycopg import sql

from benchmarks.load import TASK, Connection, Measured, Spawner, measure
from benchmarks.peers.environments import installed_python, restate_server
from benchmarks.processor import Spent, postmaster_of, spent_by, used_ms
from benchmarks.report import Timing, timing
from benchmarks.server import running_server

PROGRAMS = Path(__file__).parent / "programs"
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
WARM_SECONDS = 0.5

Door = Literal["HTTP", "in process"]


class Lives(NamedTuple):
    """Lives of one cell. `cpu_ms` is the processor time per life in milliseconds, of the
    contender's program and of its database; None if the system does not report it.
    """

    timing: Timing
    cpu_ms: Spent | None


Cell = Callable[[int, float], Lives]
"""Measures this many callers for this many seconds."""
Meter = Callable[[], Spent | None]
"""Reads the processor time that a contender has used so far."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer and its interface; `work` is one of its lives."""

    peer: str
    door: Door
    work: str

    @property
    def name(self) -> str:
        """Return the name for tables."""
        return f"{self.peer}, {self.door}"


OWN = Contender(
    "spawnlog",
    "HTTP",
    "15 events in a chain of hashes, 2 transactions, rows of the registry, kept texts and a file of"
    " the transcript; admission by rules, a composed prompt, a lane; two authenticated requests",
)
_DBOS = "one row of a workflow and three of its steps, each committed by itself"
_LANGGRAPH = "four checkpoints and their writes, each on record before the next node begins"
CONTENDERS = (
    OWN,
    Contender("dbos", "HTTP", f"{_DBOS}; one request"),
    Contender("dbos", "in process", f"{_DBOS}; a thread a caller, no request"),
    Contender("langgraph", "HTTP", f"{_LANGGRAPH}; one request"),
    Contender("langgraph", "in process", f"{_LANGGRAPH}; a task a caller, no request"),
    Contender(
        "restate",
        "HTTP",
        "an invocation and three steps in a journal; a store of its own in place of PostgreSQL, a"
        " server in Rust, the handler in Python; one request",
    ),
    Contender(
        "eventsourcing",
        "in process",
        "three events of one aggregate in three transactions of the library's own recorder; a"
        " thread a caller, no request, nothing but the events",
    ),
)


class Place(NamedTuple):
    """Folders of the comparison and of the environments, and a PostgreSQL server with its process
    id.
    """

    folder: Path
    environments: Path
    conninfo: str
    postmaster: int


@contextmanager
def started(contender: Contender, place: Place) -> Iterator[Cell]:
    """Yield a running contender.

    Raises:
        PeerMissing: It cannot be installed.
        RuntimeError: It does not start.
    """
    with ExitStack() as opened:
        if contender == OWN:
            folder = place.folder / "own"
            folder.mkdir(mode=0o711)
            server = opened.enter_context(running_server(folder))
            postmaster = postmaster_of(server.database_home)
            meter = partial(spent_by, server.pid, postmaster)
            yield _OwnLives(server.url, server.token, meter).measured
            return
        python = installed_python(place.environments, contender.peer)
        port = free_port() if contender.door == "HTTP" else 0
        request: dict[str, Any] = {"port": port}
        if contender.peer != "restate":
            request["conninfo"] = _database(place.conninfo, contender.name)
        program = str(PROGRAMS / f"{contender.peer}_life.py")
        log = place.folder / f"{contender.name}.log"
        process = opened.enter_context(
            _process([str(python), program, json.dumps(request)], {}, log)
        )
        _answer(process, START_SECONDS_MAX, log)
        meter = partial(spent_by, process.pid, place.postmaster)
        if contender.peer == "restate":
            url, store = opened.enter_context(_restate(place, port))
            meter = partial(spent_by, process.pid, store)
            yield _Requests(url, "/Lives/live", json.dumps(TASK).encode(), meter).measured
        elif port:
            yield _Requests(f"http://127.0.0.1:{port}", "/lives", b"", meter).measured
        else:
            yield _Program(process, log, meter).measured


class _OwnLives:
    """Lives of spawnlog: spawned, and waited for until their runs are archived."""

    def __init__(self, url: str, token: str, meter: Meter) -> None:
        self._url, self._token, self._meter = url, token, meter
        self._cells = 0

    def measured(self, callers: int, seconds: float) -> Lives:
        self._cells += 1

        def life(connection: Connection, caller: int) -> Callable[[], Awaitable[object]]:
            return Spawner(connection, f"{self._cells}-{caller}").life

        return uvloop.run(_measured(self._url, self._token, life, callers, seconds, self._meter))


class _Requests:
    """Lives that are one request each."""

    def __init__(self, url: str, path: str, body: bytes, meter: Meter) -> None:
        self._url, self._path, self._body, self._meter = url, path, body, meter

    def measured(self, callers: int, seconds: float) -> Lives:
        def life(connection: Connection, _: int) -> Callable[[], Awaitable[object]]:
            async def live() -> None:
                status, output = await connection.ask("POST", self._path, self._body)
                if status != 200:
                    raise RuntimeError(f"a life was answered with {status}: {output[:300]!r}")

            return live

        return uvloop.run(_measured(self._url, "none", life, callers, seconds, self._meter))


async def _measured(
    url: str,
    token: str,
    life: Callable[[Connection, int], Callable[[], Awaitable[object]]],
    callers: int,
    seconds: float,
    meter: Meter,
) -> Lives:
    connections = [Connection(url, token) for _ in range(callers)]
    try:
        for connection in connections:
            await connection.open()
        lives = [life(item, caller) for caller, item in enumerate(connections)]
        await measure(lives, WARM_SECONDS)
        before = meter()
        measured = await measure(lives, seconds)
        return _lives(measured, before, meter())
    finally:
        for connection in connections:
            await connection.close()


def _lives(measured: Measured, before: Spent | None, after: Spent | None) -> Lives:
    return Lives(timing(measured), used_ms(before, after, len(measured.latencies)))


class _Program:
    """Lives that a program lives and measures itself."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path, meter: Meter) -> None:
        self._process, self._log, self._meter = process, log, meter

    def measured(self, callers: int, seconds: float) -> Lives:
        self._ordered(callers, WARM_SECONDS)
        before = self._meter()
        measured = self._ordered(callers, seconds)
        return _lives(measured, before, self._meter())

    def _ordered(self, callers: int, seconds: float) -> Measured:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"callers": callers, "seconds": seconds}) + "\n")
        self._process.stdin.flush()
        output = _answer(self._process, seconds + START_SECONDS_MAX, self._log)
        return Measured(output["latencies"], output["seconds"])


@contextmanager
def _restate(place: Place, handler: int) -> Iterator[tuple[str, int]]:
    """Yield ingress URL and process id of a Restate server with the handler registered; the server
    is the handler's database."""
    ingress, admin, node = (f"127.0.0.1:{free_port()}" for _ in range(3))
    store = place.folder / "restate-store"
    settings = {
        "RESTATE_BASE_DIR": str(store),
        "RESTATE_INGRESS__BIND_ADDRESS": ingress,
        "RESTATE_ADMIN__BIND_ADDRESS": admin,
        "RESTATE_BIND_ADDRESS": node,
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "warn",
    }
    log = place.folder / "restate-server.log"
    with _process([str(restate_server(place.environments))], settings, log) as server:
        body = json.dumps({"uri": f"http://127.0.0.1:{handler}"}).encode()
        request = urllib.request.Request(
            f"http://{admin}/deployments", body, {"Content-Type": "application/json"}
        )
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                with urllib.request.urlopen(request, timeout=START_SECONDS_MAX):
                    break
            except (urllib.error.URLError, OSError) as error:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"restate did not start: {_last_words(log)}") from error
                time.sleep(0.2)
        yield f"http://{ingress}", server.pid


@contextmanager
def _process(
    command: list[str], settings: dict[str, str], log: Path
) -> "Iterator[subprocess.Popen[str]]":
    """Run a program during the block; stop it by the end of its input, then by signals.

    It gets no telemetry address, and of the user's settings only PATH and HOME.
    """
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with log.open("w", encoding="utf-8") as words:
        process = subprocess.Popen(
            command,
            env={**kept, "DO_NOT_TRACK": "1", "LANGCHAIN_TRACING_V2": "false", **settings},
            cwd=log.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
        )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        if settings:
            process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _answer(process: "subprocess.Popen[str]", seconds: float, log: Path) -> dict[str, Any]:
    """Return the next line of a program.

    Raises:
        RuntimeError: There is none; has the last lines of its log.
    """
    assert process.stdout is not None
    late = Timer(seconds, process.kill)
    late.start()
    try:
        line = process.stdout.readline()
    finally:
        late.cancel()
    if not line.startswith("{"):
        raise RuntimeError(f"{log.stem} did not answer: {line.strip() or _last_words(log)}")
    return dict(json.loads(line))


def _last_words(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-500:].strip() or "it said nothing"


def _database(conninfo: str, name: str) -> str:
    """Create a new database on the server. Return its URL."""
    own = "".join(letter if letter.isalnum() else "_" for letter in name.lower())
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(own)))
    return conninfo.replace("/spawnlog?", f"/{own}?")


def free_port() -> int:
    """Return an unused port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
