"""Questions about processes of this machine (Linux), and a bounded wait for an answer."""

import os
import time
from pathlib import Path

from tests.support.waiting import until


def state(pid: int) -> str:
    """Return one letter: R running, S sleeping, T stopped, Z ended but not reaped; X when gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    return stat.rpartition(b")")[2].split()[0].decode()


def is_alive(pid: int) -> bool:
    return state(pid) not in ("Z", "X")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def carrying(token: str) -> list[int]:
    """Return the processes with the token in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if token.encode() in words and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def open_descriptors() -> set[str]:
    """Return the open descriptors of this process, as names with their targets."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except FileNotFoundError:
            continue  # the process that listed them
    return found


async def until_no_more_is_open(before: set[str]) -> None:
    """Wait until no other descriptor is open than before. Another thread may have opened one just
    now.
    """
    await until(lambda: open_descriptors() <= before)


async def until_dead(*pids: int) -> None:
    assert pids
    assert all(pid > 1 for pid in pids)
    await until(lambda: not any(map(is_alive, pids)))


def wait_until_dead(pid: int) -> None:
    """Wait, as a thread of its own, until there is no such process."""
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline
