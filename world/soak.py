"""Concurrent clients against servers that are killed, and then the checker on what they wrote.

`python -m world.soak --seconds 1800 --callers 16 --servers 3`. First `history`: all that callers
may ask, held against the record; then `caps`: many callers of one session, for as long again.
`--only` leaves one of them out. Exit status 0 when the record contradicts nobody; else the folder
with all of it is kept and named.
"""

import argparse
import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2

from tests.support.servers.server import SOUND
from world.checker.history import Writing, write_end, write_events
from world.fleet.caps import storms
from world.fleet.siege import CAP, QUIET_SECONDS, Siege
from world.society.asking import ANSWER_SECONDS_MAX, Asking
from world.society.callers import Caller
from world.society.known import Known

CALLS_MAX = 500_000
SECONDS_MAX = 24 * 3600
CHECK_SECONDS_MAX = 600
DESCRIPTORS_MORE_MAX = 16
"""How many more a server may keep that was busy: connections to its database."""
PROJECT = Path(__file__).resolve().parents[1]


class Load:
    """The clients of one soak."""

    def __init__(self, siege: Siege, history: Path, callers: int, seed: int) -> None:
        self._siege = siege
        self._history = history
        self._callers = callers
        self._seed = seed
        self._over = asyncio.Event()
        self.calls = 0

    async def run(self, seconds: float) -> None:
        """Ask and attack for so long, and let everybody hear its last answer."""
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=self._callers)
        async with httpx2.AsyncClient(timeout=ANSWER_SECONDS_MAX, limits=limits) as http:
            known = Known()
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._callers):
                    tasks.create_task(self._call(number, http, known))
                tasks.create_task(self._siege.attack(self._over))
                await asyncio.sleep(seconds)
                self._over.set()

    async def _call(self, number: int, http: httpx2.AsyncClient, known: Known) -> None:
        name = f"c{number}"
        writing = Writing(self._history, name)
        asking = Asking(name, self._siege.servers, http, writing)
        die = random.Random(f"{self._seed} {name}")
        caller = Caller(asking, known, self._siege.up, die)
        while not self._over.is_set() and self.calls < CALLS_MAX:
            self.calls += 1
            await caller.next()
        writing.close()


def soak(folder: Path, arguments: argparse.Namespace) -> bool:
    """Make a history in the folder; False when a run did not come to its end, or something is
    wrong with what is left."""
    history = folder / "history"
    history.mkdir()
    faults: list[str] = []
    siege = Siege(folder, arguments.servers, random.Random(f"{arguments.seed} siege"))
    with siege.standing():
        load = Load(siege, history, arguments.callers, arguments.seed)
        began = time.monotonic()
        asyncio.run(load.run(arguments.seconds))
        seconds = time.monotonic() - began
        try:
            siege.settle(quiet_seconds=QUIET_SECONDS)
        except AssertionError as late:
            faults.append(str(late))
        siege.descriptors.append(siege.servers[0].descriptors())
        spawns, messages, events = Counter[str](), 0, 0

        def counted() -> Iterator[Mapping[str, Any]]:
            nonlocal events, messages
            for event in siege.events():
                events += 1
                if event["type"] == "SpawnRequested":
                    spawns[event["payload"]["requester"]["sessionKey"]] += 1
                messages += event["type"] == "MessageReceived"
                yield event

        write_events(history, counted())
        write_end(history, {key: list(siege.inbox(key)) for key in spawns}, CAP)
    print(
        f"{seconds:.0f} s, {arguments.callers} callers, {arguments.servers} servers, seed"
        f" {arguments.seed}: {load.calls / seconds:.0f} calls, {spawns.total() / seconds:.0f}"
        f" spawns, {messages / seconds:.1f} messages and {events / seconds:.0f} events a second;"
        f" faults: {dict(siege.faults)}"
    )
    faults += siege.servers[0].log_faults(*SOUND)
    first, *_, last = siege.descriptors
    print(
        f"descriptors of a server: {first} at first, {max(siege.descriptors)} at most, {last} last"
    )
    if last > first + DESCRIPTORS_MORE_MAX:
        faults.append(f"a server has {last} descriptors when all is over, and had {first}")
    for fault in faults:
        print(f"VIOLATED {fault}")
    return not faults


def checked(history: Path) -> bool:
    """What the checker, a program of its own, says of it."""
    command = [sys.executable, "-m", "world.check", str(history)]
    return (
        subprocess.run(command, cwd=PROJECT, timeout=CHECK_SECONDS_MAX, check=False).returncode == 0
    )


def history_is_sound(folder: Path, arguments: argparse.Namespace) -> bool:
    """Soak, check."""
    sound = soak(folder, arguments)
    sys.stdout.flush()
    return checked(folder / "history") and sound


def caps_are_kept(folder: Path, arguments: argparse.Namespace) -> bool:
    """Storms over one session after the other."""
    place = folder / "caps"
    place.mkdir()
    faults = list(storms(place, arguments.seconds, arguments.seed))
    for fault in faults:
        print(f"VIOLATED {fault}")
    return not faults


PARTS = {"history": history_is_sound, "caps": caps_are_kept}


def main(words: Sequence[str]) -> int:
    """Parse the command line, and do its parts."""
    parser = argparse.ArgumentParser(prog="python -m world.soak")
    parser.add_argument("--only", choices=PARTS, help="this part alone, not one after the other")
    parser.add_argument("--seconds", type=float, default=1800, help="of each part")
    parser.add_argument("--callers", type=int, default=16, help="of the history")
    parser.add_argument("--servers", type=int, default=3, help="of the history")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, help="an empty one; made, and removed, if not given")
    arguments = parser.parse_args(words)
    if not 0 < arguments.seconds <= SECONDS_MAX or arguments.callers < 1 or arguments.servers < 1:
        parser.error(f"give 1 caller and 1 server at least, and up to {SECONDS_MAX} seconds")
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="spawnlog-soak-"))
    parts = [does for part, does in PARTS.items() if arguments.only in (None, part)]
    good = False
    try:
        results = [does(folder, arguments) for does in parts]
        good = all(results)
    finally:
        if not good:
            print(f"everything is in {folder}")
    if arguments.folder is None and good:
        shutil.rmtree(folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
