"""Run concurrent clients against servers that are killed, then check what they noted.

`python -m world.soak --seconds 1800 --callers 16 --servers 3`. The part `history` compares all
kinds of requests with the record; then the part `caps`, for as long again, has many callers of one
session. `--only` runs one part. The exit status is 0 without a contradiction; otherwise the folder
with all files is kept and printed.
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
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2

from tests.support.builders.key_spellings import spellings
from tests.support.servers.server import SOUND
from world.checker.history import Writing, write_end, write_events
from world.fleet.siege import Siege, Terms
from world.society.asking import ANSWER_SECONDS_MAX, HttpAsking
from world.society.callers import SOCIABLE, Caller, Habits
from world.society.known import Known

CALLS_MAX = 500_000
SECONDS_MAX = 24 * 3600
CHECK_SECONDS_MAX = 600
QUIET_SECONDS = 3.0
LOOK_SECONDS = 0.05
DESCRIPTORS_MORE_MAX = 16
"""Maximum number of additional open files of a server after load: connections to its database."""
CAPS = (1, 5, 20)
PATIENT = "patient"
"""Name of a child that waits to be stopped."""
SPAWNS_OF_A_STORM = {201, "active_children", 503, None}
"""Possible answers to a spawn that needs only a place: statuses and a rule."""
PROJECT = Path(__file__).resolve().parents[1]


def everything(callers: int, servers: int) -> Terms:
    """Return terms with all kinds of requests, under a small cap."""
    return Terms(
        cap=3,
        callers=callers,
        servers=servers,
        habits=SOCIABLE,
        paces={"quick": (), "slow": (150,), "failing": (150,), "long": (4000,)},
        settings={"maxSpawnDepth": 2, "maxConcurrent": 8, "leaseSeconds": 3.0},
        pause_seconds=(1.0, 4.0),
        database_stops=0.25,
    )


def storm(cap: int) -> Terms:
    """Return terms with many callers of one session.

    They spawn under every spelling of its key and send messages to its children, while those end.
    Refusals alone would leave the servers no time for the children.
    """
    paces = {"at-once": (0,), "soon": (20,), "later": (50,)}
    return Terms(
        cap=cap,
        callers=256,
        servers=4,
        habits=Habits(
            acts={"spawn": 20, "message": 16, "read_session": 1},
            agents=dict.fromkeys(paces, 1),
            spellings={"agent:main:storm": spellings("storm")},
            away_seconds_max=0.3,
        ),
        paces={**paces, PATIENT: (600_000,)},
        settings={
            "maxSpawnDepth": 1,
            "maxConcurrent": 64,
            "archiveAfterMinutes": 0,
            "leaseSeconds": 2.0,
            "drainSeconds": 1,
        },
        pause_seconds=(0.3, 1.0),
        accepted_min=3 * cap,
    )


class Load:
    """The clients of one soak."""

    def __init__(self, siege: Siege, history: Path, terms: Terms, seed: int) -> None:
        self._siege = siege
        self._history = history
        self._terms = terms
        self._seed = seed
        self._over = asyncio.Event()
        self.known = Known()

    @property
    def calls(self) -> int:
        """Return the number of calls."""
        return self.known.answers.total()

    async def run(self, seconds: float) -> None:
        """Send requests and attack for this time, and wait for all answers."""
        async with self._client() as http, asyncio.TaskGroup() as tasks:
            for number in range(self._terms.callers):
                tasks.create_task(self._call(f"c{number}", http))
            tasks.create_task(self._siege.attack(self._over))
            await asyncio.sleep(seconds)
            # On a slow machine it takes longer until places were used again.
            while not self._is_enough():
                await asyncio.sleep(LOOK_SECONDS)
            self._over.set()

    def _is_enough(self) -> bool:
        accepted = self.known.answers["spawn", 201]
        return self._siege.faults.total() >= 2 and accepted >= self._terms.accepted_min

    def _client(self) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=self._terms.callers)
        return httpx2.AsyncClient(timeout=ANSWER_SECONDS_MAX, limits=limits)

    async def _call(self, name: str, http: httpx2.AsyncClient) -> None:
        with closing(Writing(self._history, name)) as writing:
            asking = HttpAsking(name, self._siege.servers, http, writing)
            die = random.Random(f"{self._seed} {name}")
            caller = Caller(asking, self.known, self._siege.up, die, self._terms.habits)
            while not self._over.is_set() and self.calls < CALLS_MAX:
                await caller.next()

    async def take_every_place(self) -> list[str]:
        """Spawn as many children as the cap allows, and some more, at all servers. Return the
        violations.
        """
        cap, servers = self._terms.cap, len(self._siege.servers)
        (requester,) = self._terms.habits.spellings
        async with self._client() as http:
            with closing(Writing(self._history, "last")) as writing:
                asking = HttpAsking("last", self._siege.servers, http, writing)

                async def spawned(number: int) -> str | None:
                    label = f"last-{number}"
                    body = {"requester": {"sessionKey": requester}, "task": "wait"}
                    call = await asking.ask(
                        "spawn",
                        "POST",
                        "/v1/spawns",
                        number % servers,
                        body={**body, "label": label, "agentId": PATIENT},
                        label=label,
                        requester=requester,
                    )
                    return str(call.answer["runId"]) if call.status == 201 else None

                first = await asyncio.gather(*map(spawned, range(cap)))
                more = await asyncio.gather(*map(spawned, range(cap, cap + servers)))
                held = [run_id for run_id in (*first, *more) if run_id is not None]
                for run_id in held:
                    path, body = f"/v1/runs/{run_id}/stop", {"reason": "enough"}
                    await asking.ask("stop", "POST", path, 0, body=body, about=run_id)
        faults = []
        if None in first or len(held) != cap:
            faults.append(f"at the end {len(held)} of {cap} places were free: {first}, {more}")
        statuses = {status for kind, status in self.known.answers if kind == "spawn"}
        if wrong := statuses - SPAWNS_OF_A_STORM:
            faults.append(f"spawns were answered with {wrong}")
        return faults


def checked(history: Path) -> bool:
    """Return True if the checker, run as a process, finds no contradiction."""
    command = [sys.executable, "-m", "world.check", str(history)]
    return (
        subprocess.run(command, cwd=PROJECT, timeout=CHECK_SECONDS_MAX, check=False).returncode == 0
    )


def soak(folder: Path, terms: Terms, seconds: float, seed: int) -> bool:
    """Make a history in the folder and check it.

    Returns:
        False if a run did not end, or the checker found a contradiction.
    """
    history = folder / "history"
    history.mkdir(parents=True)
    faults: list[str] = []
    siege = Siege(folder, terms, random.Random(f"{seed} siege"))
    with siege.standing():
        load = Load(siege, history, terms, seed)
        began = time.monotonic()
        asyncio.run(load.run(seconds))
        took, calls = time.monotonic() - began, load.calls
        try:
            siege.settle(quiet_seconds=QUIET_SECONDS)
            if PATIENT in terms.paces:
                faults += asyncio.run(load.take_every_place())
                siege.settle()
        except AssertionError as late:
            faults.append(str(late))
        siege.descriptors.append(siege.servers[0].descriptors())
        spawns, messages, events, most = Counter[str](), 0, 0, 0

        def counted() -> Iterator[Mapping[str, Any]]:
            nonlocal events, messages, most
            for event in siege.events():
                events += 1
                if event["type"] == "SpawnRequested":
                    spawns[event["payload"]["requester"]["sessionKey"]] += 1
                messages += event["type"] == "MessageReceived"
                if event["type"] == "ChildAdmitted":
                    most = max(most, event["payload"]["activeChildren"] + 1)
                yield event

        write_events(history, counted())
        inboxes = {key: list(siege.inbox(key)) for key in spawns}
        write_end(history, inboxes, terms.cap, siege.deaths)
    print(
        f"cap {terms.cap}: {took:.0f} s, {terms.callers} callers, {terms.servers} servers, seed"
        f" {seed}: {calls / took:.0f} calls, {spawns.total() / took:.0f} spawns,"
        f" {messages / took:.1f} messages and {events / took:.0f} events a second; at most {most}"
        f" children; faults: {dict(siege.faults)}"
    )
    faults += siege.servers[0].log_faults(*SOUND)
    if most < terms.cap:
        faults.append(f"there were never more than {most} children")
    first, *_, last = siege.descriptors
    print(
        f"descriptors of a server: {first} at first, {max(siege.descriptors)} at most, {last} last"
    )
    if last > first + DESCRIPTORS_MORE_MAX:
        faults.append(f"a server has {last} descriptors when all is over, and had {first}")
    for fault in faults:
        print(f"VIOLATED {fault}")
    sys.stdout.flush()
    return checked(history) and not faults


def history_is_sound(folder: Path, arguments: argparse.Namespace) -> bool:
    """Run all kinds of requests at once."""
    terms = everything(arguments.callers, arguments.servers)
    return soak(folder, terms, arguments.seconds, arguments.seed)


def caps_are_kept(folder: Path, arguments: argparse.Namespace) -> bool:
    """Run a storm over each cap, one after the other."""
    seconds = arguments.seconds / len(CAPS)
    sound = [soak(folder / f"cap-{cap}", storm(cap), seconds, arguments.seed) for cap in CAPS]
    return all(sound)


PARTS = {"history": history_is_sound, "caps": caps_are_kept}


def main(words: Sequence[str]) -> int:
    """Parse the command line and run the parts. Return the exit status."""
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
