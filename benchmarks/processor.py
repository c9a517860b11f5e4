"""Processor time of a server and its database, as the system counts it."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import Server

PROCESSES = Path("/proc")


class ProcessUse(NamedTuple):
    """A process: its parent, and seconds of a core that it and its ended children have used."""

    parent: int
    seconds: float


def process_use(stat: str, ticks_a_second: int) -> ProcessUse:
    """Return the processor time and parent in the text of a `stat` file."""
    # The program's name is in brackets and may contain brackets.
    fields = stat.rpartition(")")[2].split()
    return ProcessUse(int(fields[1]), sum(map(int, fields[11:15])) / ticks_a_second)


def tree_seconds(processes: Mapping[int, ProcessUse], root: int) -> float:
    """Return the processor seconds of a process and everything below it."""
    below = [pid for pid, process in processes.items() if process.parent == root]
    own = processes[root].seconds if root in processes else 0.0
    return own + sum(tree_seconds(processes, pid) for pid in below)


class Spent(NamedTuple):
    """Seconds of a core until now."""

    server: float
    postgres: float


def used_ms(before: Spent | None, after: Spent | None, acts: int) -> Spent | None:
    """Return milliseconds of a core for each of `acts` acts between two readings.

    None if a reading is missing or nothing was done.
    """
    seconds = used(before, after)
    if seconds is None or not acts:
        return None
    return Spent(*(1000 * second / acts for second in seconds))


def used(before: Spent | None, after: Spent | None) -> Spent | None:
    """Return the seconds of a core between two readings. None if a reading is missing."""
    if before is None or after is None:
        return None
    return Spent(after.server - before.server, after.postgres - before.postgres)


def spent(server: Server) -> Spent | None:
    """Return the processor time of a server and of its embedded PostgreSQL, with all processes.
    None if the system does not report it.
    """
    return spent_by(server.pid, postmaster_of(server.database_home))


def postmaster_of(database_home: Path) -> int:
    """Return the process id of the embedded PostgreSQL below a folder."""
    (note,) = database_home.rglob("postmaster.pid")
    return int(note.read_text("utf-8").split("\n", 1)[0])


def spent_by(server: int, database: int) -> Spent | None:
    """Return the processor time of the process trees of a server and of its database. None if the
    system does not report it.
    """
    if not PROCESSES.is_dir():
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    processes: dict[int, ProcessUse] = {}
    for path in PROCESSES.iterdir():
        if path.name.isdigit():
            try:
                text = (path / "stat").read_text("utf-8", "replace")
            except OSError:
                continue
            processes[int(path.name)] = process_use(text, ticks)
    # The supervisor of the embedded server may be the service's child, or an orphan.
    outside = {pid: process for pid, process in processes.items() if pid != database}
    return Spent(tree_seconds(outside, server), tree_seconds(processes, database))
