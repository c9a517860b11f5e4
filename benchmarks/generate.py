"""Generate a long history: `python -m benchmarks.generate --events 1000000 --data-dir DIR`.

It is simulated on a synthetic clock, decided by the rules of the server, reproducible by its seed,
and stored into a new, empty database.
"""

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import psycopg

from benchmarks.history.shifts import START, MadeShift, made, planned
from benchmarks.history.simulation import LengthMissed, Shift
from benchmarks.history.storage.bulk_store import BulkStore
from benchmarks.history.storage.event_rows import chain_hashes, with_bytes
from infrastructure.contract.errors import UserError
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.database import migrate_database, open_database

EVENTS_MIN, EVENTS_MAX = 100, 10_000_000
PROCESSES_MAX = 64
TELL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Generated:
    """Number of events, and the seconds until all were sent and until they were visible."""

    events: int
    sent_seconds: float
    seconds: float


def generate(
    conninfo: str, *, events: int, seed: int, processes: int = 1, tell: bool = False
) -> Generated:
    """Store a history of this many events, in which every run has ended.

    Raises:
        UserError: The database is not a migrated, empty one.
    """
    began = result = time.monotonic()
    with BulkStore(conninfo) as store:
        shifts = planned(events, seed, store.log_id)
        last_hash, recorded_at, position = b"", START, 0
        for shift in _all_made(shifts, store.kinds, min(processes, len(shifts))):
            hashes = chain_hashes(last_hash, shift.rests)
            rows = {table: b"".join(chunks) for table, chunks in shift.others.items()}
            store.store({"events": with_bytes(shift.events, hashes), **rows})
            last_hash, recorded_at, position = hashes[-1], shift.recorded_at, shift.last_position
            if tell and time.monotonic() - result >= TELL_SECONDS:
                result = time.monotonic()
                _tell(position, result - began)
        store.flush()
        sent = time.monotonic() - began
        store.commit(position, recorded_at, last_hash)
    return Generated(position, sent, time.monotonic() - began)


def _all_made(
    shifts: Sequence[Shift], kinds: Mapping[str, Sequence[str]], processes: int
) -> Iterator[MadeShift]:
    """Yield all shifts in order, made by this number of processes."""
    if processes == 1:
        for shift in shifts:
            yield made(shift, kinds)
        return
    # Not forked: the process that stores has a thread and a connection.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting: deque[Future[MadeShift]] = deque()
        try:
            for shift in shifts:
                waiting.append(pool.submit(made, shift, kinds))
                if len(waiting) > processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate a history and print its rate. Return the exit status."""
    options = _options(arguments)
    try:
        done = _generated(options)
    except (UserError, LengthMissed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except psycopg.Error as error:
        print(f"error: the database: {str(error).strip().splitlines()[0]}", file=sys.stderr)
        return 2
    print(
        f"{done.events} events in {done.seconds:.1f} s: {done.events / done.seconds:.0f} a second"
        f" ({done.events / done.sent_seconds:.0f} until the indexes were made)"
    )
    return 0


def _generated(options: argparse.Namespace) -> Generated:
    if options.database is not None:
        migrate_database(options.database, Path())
        return _into(options.database, options)
    database = open_database(None, DataDirectory.open(options.data_dir).postgres)
    try:
        return _into(database.conninfo, options)
    finally:
        database.close()


def _into(conninfo: str, options: argparse.Namespace) -> Generated:
    return generate(
        conninfo,
        events=options.events,
        seed=options.seed,
        processes=options.processes,
        tell=True,
    )


def _tell(events: int, seconds: float) -> None:
    print(f"{events} events, {events / seconds:.0f} a second", file=sys.stderr)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.generate", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument("--events", type=int, default=1_000_000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--processes", type=int, default=min(os.cpu_count() or 1, 8), help="that make events"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--database", metavar="URL", help="an empty PostgreSQL database")
    where.add_argument("--data-dir", metavar="DIR", type=Path, help="a new data directory")
    options = parser.parse_args(arguments)
    if not EVENTS_MIN <= options.events <= EVENTS_MAX:
        parser.error(f"--events must be from {EVENTS_MIN} to {EVENTS_MAX}")
    if not 1 <= options.processes <= PROCESSES_MAX:
        parser.error(f"--processes must be from 1 to {PROCESSES_MAX}")
    return options


if __name__ == "__main__":
    sys.exit(main())
