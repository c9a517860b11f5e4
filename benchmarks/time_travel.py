"""Cost of looking back: reads as of a moment, moments, what-if and copies, on a long and a short
log in turns.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from benchmarks.generate import generate
from benchmarks.history.shifts import SHIFT_EVENTS
from benchmarks.load import Connection
from benchmarks.long_history import measured_copies
from benchmarks.processor import Spent, spent, used_ms
from benchmarks.report import Figure, percentile
from benchmarks.server import Server, running_server
from benchmarks.what_if import measured_what_if
from infrastructure.server.database import open_database

SEED = 1
EVENTS_MIN = 2_000
"""Minimum number of events. In a shorter log, the short one would have no runs at its moments."""
SHORT_EVENTS_MAX = 10_000
MOMENTS = ("beginning", "middle", "end")
SUBJECTS = 16
"""Number of runs around a moment that take turns, so that no answer is cached from the previous
one.
"""
SUBJECTS_PER_RECORD = 100
"""Number of runs that, a few events apart, would fill a short log. A page shares with the next as
much as when a user drags the slider.
"""
DIFF_EVENTS = 100
COUNT_SECONDS_MAX = 600.0
LOOK_SECONDS = 0.2
ALL = "all"
LONG, SHORT = "long", "short"


@dataclass(frozen=True, slots=True)
class Subject:
    """A run that was there at a position, the session that asked for it, and an instant then."""

    position: int
    run_id: str
    session: str
    at: str


def _diff(subject: Subject) -> str:
    left = max(1, subject.position - DIFF_EVENTS)
    return f"/v1/diff?from=pos:{left}&to=pos:{subject.position}"


PathOf = Callable[[Subject], str]
AS_OF: Mapping[str, PathOf] = {
    "registry page": lambda moment: f"/v1/runs?at=pos:{moment.position}&limit=50",
    "run": lambda moment: f"/v1/runs/{moment.run_id}?at=pos:{moment.position}",
    "session": lambda moment: f"/v1/sessions/{moment.session}?at=pos:{moment.position}",
    "tree": lambda moment: f"/v1/sessions/{moment.session}/tree?at=pos:{moment.position}",
    "inbox": lambda moment: f"/v1/sessions/{moment.session}/announcements?at=pos:{moment.position}",
    "lanes": lambda moment: f"/v1/lanes?at=pos:{moment.position}",
    "agents": lambda moment: f"/v1/agents?requester={moment.session}&at=pos:{moment.position}",
    "history of a run": lambda moment: f"/v1/runs/{moment.run_id}/history?at=pos:{moment.position}",
    "explanation of a run": lambda moment: (
        f"/v1/runs/{moment.run_id}/explain?at=pos:{moment.position}"
    ),
    "diff of a run": lambda run: f"{_diff(run)}&runId={run.run_id}",
    "diff of a tree": lambda moment: f"{_diff(moment)}&tree={moment.session}",
    f"diff of the registry, {DIFF_EVENTS} events": _diff,
    "moment": lambda moment: f"/v1/moments?at={moment.at}",
}
"""Reads as of a moment."""
WHOLE: Mapping[str, PathOf] = {
    "run, now": lambda run: f"/v1/runs/{run.run_id}",
    "registry page, now": lambda _: "/v1/runs?limit=50",
    "timeline, 50 bars and 100 buckets": lambda _: "/v1/timeline?limit=50&buckets=100",
    "timeline as of then": lambda moment: (
        f"/v1/timeline?limit=50&buckets=100&to=pos:{moment.position}"
    ),
    "histogram by position": lambda moment: (
        f"/v1/events/histogram?buckets=100&by=position&to=pos:{moment.position}"
    ),
    "histogram by time": lambda moment: (
        f"/v1/events/histogram?buckets=100&by=time&to=pos:{moment.position}"
    ),
}
"""Reads of the whole log, or of the current state."""


def measured_time_travel(folder: Path, events: int, seconds: float, processes: int) -> list[Figure]:
    """Return the figures of a log of this many events beside one of at most ten thousand.

    Each kind of read is measured for about `seconds` on both together.
    """
    folder.mkdir(mode=0o711)
    sizes = {LONG: events, SHORT: short_of(events)}
    for name, size in sizes.items():
        _make(folder / name, size, processes)
    figures: list[Figure] = []
    with ExitStack() as opened:
        servers = {name: opened.enter_context(running_server(folder / name)) for name in sizes}
        figures += asyncio.run(_measured_reads(servers, sizes, seconds))
        for name, server in servers.items():
            title = f"what-if, {sizes[name]} events"
            figures += asyncio.run(measured_what_if(server, title, sizes[name]))
    for name, size in sizes.items():
        for copy in measured_copies(folder / name, folder / name / "data", size):
            figures.append(Figure(f"{copy.name}, {size} events", copy.unit, copy.value, copy.note))
    return figures


def short_of(events: int) -> int:
    """Return the length of the short log beside a long one."""
    return min(SHORT_EVENTS_MAX, max(1_000, events // 10))


def moments_of(events: int) -> dict[str, int]:
    """Return a position for each moment. All moments of generated histories are equally busy, short
    or long.
    """
    shifts = max(1, round(events / SHIFT_EVENTS))
    length = events // shifts
    step = min(length, SHORT_EVENTS_MAX) // 4
    places = (0, shifts // 2, shifts - 1)
    return {
        name: place * length + (number + 1) * step
        for number, (name, place) in enumerate(zip(MOMENTS, places, strict=True))
    }


def _make(folder: Path, events: int, processes: int) -> None:
    folder.mkdir(mode=0o711)
    data = folder / "data"
    data.mkdir(mode=0o711)
    database = open_database(None, data / "postgres")
    try:
        generate(database.conninfo, events=events, seed=SEED, processes=processes)
        with psycopg.connect(database.conninfo, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
    finally:
        database.close()


async def _measured_reads(
    servers: Mapping[str, Server], sizes: Mapping[str, int], seconds: float
) -> list[Figure]:
    connections = {name: Connection(server.url, server.token) for name, server in servers.items()}
    for connection in connections.values():
        await connection.open()
    try:
        figures = [
            Figure(f"counting {sizes[name]} events behind a start", "s", await _counted(item))
            for name, item in connections.items()
        ]
        subjects = {
            name: {
                moment: await _subjects(item, position, short_of(sizes[LONG]))
                for moment, position in moments_of(sizes[name]).items()
            }
            for name, item in connections.items()
        }
        plans: list[tuple[str, str, PathOf]] = [
            *((read, moment, path) for read, path in AS_OF.items() for moment in MOMENTS),
            *((read, ALL, path) for read, path in WHOLE.items()),
        ]
        for read, moment, path in plans:
            paths = {
                name: _in_turn(path, _of_moment(subjects[name], moment)) for name in connections
            }
            title = read if moment == ALL else f"{read} as of the {moment}"
            before = spent(servers[LONG])
            ordered = await _beside(connections, paths, seconds)
            used = used_ms(before, spent(servers[LONG]), len(ordered[LONG]) + 1)
            figures.append(beside(title, ordered, used))
        return figures
    finally:
        for connection in connections.values():
            await connection.close()


def _of_moment(subjects: Mapping[str, Sequence[Subject]], moment: str) -> list[Subject]:
    if moment != ALL:
        return list(subjects[moment])
    found = [item for those in subjects.values() for item in those]
    random.Random(SEED).shuffle(found)
    return found


def _in_turn(path: PathOf, subjects: Sequence[Subject]) -> Iterator[str]:
    while True:
        for subject in subjects:
            yield path(subject)


async def _beside(
    connections: Mapping[str, Connection], paths: Mapping[str, Iterator[str]], seconds: float
) -> dict[str, list[float]]:
    """Return the sorted durations of each read, made alternately on both logs. The first of each is
    not counted.
    """
    taken: dict[str, list[float]] = {name: [] for name in connections}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds or len(taken[SHORT]) < SUBJECTS:
        for name, connection in connections.items():
            path = next(paths[name])
            request = time.perf_counter()
            status, answer = await connection.ask("GET", path)
            taken[name].append(time.perf_counter() - request)
            if status != 200:
                raise RuntimeError(f"GET {path} was answered with {status}: {answer[:300]!r}")
    return {name: sorted(submission[1:]) for name, submission in taken.items()}


def beside(name: str, ordered: Mapping[str, Sequence[float]], used: Spent | None = None) -> Figure:
    """Return the median on the long log. The note has the 95th percentile, both values on the short
    log, the ratio of the medians, and the processor milliseconds of one read.

    `ordered` are sorted seconds.
    """
    long, short = (
        [percentile(ordered[which], share) * 1000 for share in (0.5, 0.95)]
        for which in (LONG, SHORT)
    )
    note = (
        f"p95 {long[1]:.1f}; short record: {short[0]:.1f}, p95 {short[1]:.1f};"
        f" {long[0] / short[0]:.2f} times"
    )
    if used is not None:
        note += f"; of a core {used.server:.1f} and {used.postgres:.1f}"
    return Figure(name, "ms p50", round(long[0], 2), note)


async def _subjects(connection: Connection, position: int, events: int) -> list[Subject]:
    """Return runs that a root session requested not long before, and consecutive positions."""
    page = await connection.read(f"/v1/runs?at=pos:{position}&limit=200")
    found = [item for item in page["items"] if item["depth"] == 1][:SUBJECTS]
    if not found:
        raise RuntimeError(f"no root session had a run as of position {position}")
    return [
        Subject(
            position=position + number * (events // SUBJECTS_PER_RECORD),
            run_id=run["runId"],
            session=quote(run["requesterSessionKey"], safe=""),
            at=quote(run["createdAt"], safe=""),
        )
        for number, run in enumerate(found)
    ]


async def _counted(connection: Connection) -> float:
    """Return the seconds until a server that has just started has counted its log."""
    began = time.monotonic()
    while True:
        status, answer = await connection.ask("GET", "/v1/events/histogram?buckets=10")
        waited = time.monotonic() - began
        if status == 200:
            return round(waited, 2)
        if status != 503 or waited > COUNT_SECONDS_MAX:
            output = json.loads(answer).get("detail")
            raise RuntimeError(f"the events are not counted after {waited:.0f} s: {output}")
        await asyncio.sleep(LOOK_SECONDS)
