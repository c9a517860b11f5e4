"""Many callers at several servers spawn for one session, and may talk to its children, while those
end and servers are killed and started again; then every place must be free once more."""

import asyncio
import contextlib
import itertools
import random
import subprocess
import sys
import time
from typing import Any

from tests.support.builders.key_spellings import spellings
from tests.support.servers.preloaded import ROOT
from world.fleet.cap_ledger import TYPES, CapLedger
from world.fleet.fleet import (
    PAGE,
    SETTLE_SECONDS_MAX,
    Fleet,
    Line,
    LostWithItsServer,
)
from world.society.agents import society

SERVERS = 4
CALLERS_EACH = 64
LEASE_SECONDS = 2.0
LANE = 64
PACES = {"at-once": (0,), "soon": (20,), "later": (50,)}
PAUSE_SECONDS = (0.3, 1.0)
LAST_SECONDS = 1.0
"""How long callers go on after the last kill."""
LOOK_SECONDS = 0.05
MESSAGE = {"message": "and once more"}
KILLS_MIN = 2
VERIFY_SECONDS_MAX = 1800


def storm_configuration(cap: int) -> dict[str, Any]:
    """Children that are over at once or in a moment, and some that wait to be stopped."""
    return society(
        {**PACES, "patient": (600_000,)},
        cap=cap,
        maxSpawnDepth=1,
        maxConcurrent=LANE,
        archiveAfterMinutes=0,
        leaseSeconds=LEASE_SECONDS,
        drainSeconds=1,
    )


class CapStorm:
    """One storm over a fleet whose configuration has this cap. `ledger` says what came of it. Set
    `talks`, and half of the callers send messages to children of theirs.

    A caller that was refused stays away for `away_seconds_max` at most: refusals alone would leave
    the servers no time for the children.
    """

    def __init__(
        self, fleet: Fleet, cap: int, die: random.Random, *, away_seconds_max: float
    ) -> None:
        self.talks = False
        self._fleet = fleet
        self._cap = cap
        self._die = die
        self._away_seconds_max = away_seconds_max
        self._name = f"storm-{cap}"
        self._key = f"agent:main:{self._name}"
        self._over = asyncio.Event()
        self._lost = 0
        self._position = 0
        self.messages = 0
        self.ledger = CapLedger(self._key, cap)

    async def blow(self, seconds: float, *, admitted_min: int = 0) -> str:
        """All of it, for so long and until `KILLS_MIN` servers were killed and so many children
        admitted; says in a line how much it was."""
        before, began = self._fleet.kills, time.monotonic()
        self._position = self._fleet.read("/v1/events", limit=1)["head"]
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(len(self._fleet.servers) * CALLERS_EACH):
                    tasks.create_task(self._call(number))
                tasks.create_task(self._kill(began + seconds, before + KILLS_MIN, admitted_min))
            took = time.monotonic() - began
            answers, admitted = self.ledger.answers, self.ledger.statuses[201]
            await asyncio.to_thread(self._settle)
            await self._take_every_place_again()
            await asyncio.to_thread(self._settle)
            await self._watch_until_now(watching)
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        self.ledger.close()
        return (
            f"cap {self._cap}: {len(self._fleet.servers)} servers,"
            f" {len(self._fleet.servers) * CALLERS_EACH} callers, {took:.0f} s,"
            f" {answers / took:.0f} answers/s, {admitted / took:.0f} admitted/s,"
            f" {self.messages} messages, statuses"
            f" {dict(sorted(self.ledger.statuses.items()))}, {self._lost} lost with their server,"
            f" at most {self.ledger.most} children, kills {self._fleet.kills - before}"
        )

    async def _call(self, number: int) -> None:
        """A caller of one server, until the storm is over. Every second one may talk to a child."""
        line = Line(self._fleet, number % len(self._fleet.servers))
        keys = itertools.cycle(spellings(self._name))
        agents = itertools.cycle(PACES)
        for _ in range(number % len(PACES)):
            next(keys), next(agents)
        talks, child = self.talks and number // len(self._fleet.servers) % 2 == 1, ""
        try:
            while not self._over.is_set():
                body = {"requester": {"sessionKey": next(keys)}, "agentId": next(agents)}
                body |= {"task": "hello", "cleanup": "keep" if talks else "delete"}
                path = f"/v1/runs/{child}/messages" if child else "/v1/spawns"
                try:
                    status, answer = await line.ask("POST", path, MESSAGE if child else body)
                except LostWithItsServer:
                    self._lost += 1
                    continue
                self.ledger.hear(status, answer, of_message=bool(child))
                self.messages += bool(child) and status == 201
                if talks and status == 201:
                    child = str(answer["runId"])
                if status != 201:
                    await asyncio.sleep(self._die.uniform(0, self._away_seconds_max))
        finally:
            await line.close()

    async def _kill(self, until: float, kills: int, admitted_min: int) -> None:
        """Kill one server after the other, and end the storm when it is time: soon after a kill,
        so that the last to come back need not wait for a crowd."""

        def is_time() -> bool:
            return time.monotonic() >= until and self._fleet.kills >= kills

        try:
            while not self._over.is_set():
                await asyncio.sleep(self._die.uniform(*PAUSE_SECONDS))
                number = self._die.randrange(len(self._fleet.servers))
                async with asyncio.TaskGroup() as tasks:
                    killing = tasks.create_task(self._fleet.kill(number))
                    await asyncio.wait({killing}, timeout=LAST_SECONDS)
                    if is_time():
                        # On a slow machine it takes longer until places were used again.
                        while len(self.ledger.admitted) < admitted_min:
                            await asyncio.sleep(LOOK_SECONDS)
                        self._over.set()
        finally:
            self._over.set()

    async def _watch(self) -> None:
        """Follow the log and look at the session, at one server after the other."""
        lines = [Line(self._fleet, number) for number in range(len(self._fleet.servers))]
        try:
            for number in itertools.cycle(range(len(lines))):
                is_all = not self._fleet.is_there(number)
                with contextlib.suppress(LostWithItsServer):
                    is_all = is_all or await self._read_on(lines[number])
                if is_all:
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            for line in lines:
                await line.close()

    async def _read_on(self, line: Line) -> bool:
        """Take in a page of the log; whether that was all of it."""
        query = f"after={self._position}&limit={PAGE}&types={','.join(TYPES)}"
        status, page = await line.ask("GET", f"/v1/events?{query}")
        if status != 200:
            return True
        for event in page["items"]:
            self.ledger.record(event)
        self._position = page["nextAfter"]
        status, session = await line.ask("GET", f"/v1/sessions/{self._key}")
        if status == 200:
            self.ledger.look(session)
        return bool(page["nextAfter"] >= page["head"])

    async def _watch_until_now(self, watching: "asyncio.Task[None]") -> None:
        head = self._fleet.read("/v1/events", limit=1)["head"]
        async with asyncio.timeout(SETTLE_SECONDS_MAX):
            while self._position < head and not watching.done():
                await asyncio.sleep(LOOK_SECONDS)
        if watching.done():
            await watching

    def _settle(self) -> None:
        """Wait until everything is over. Then a place that is taken is lost."""
        self._fleet.settle()
        active = self._fleet.read(f"/v1/sessions/{self._key}")["activeChildren"]
        self.ledger.must(active == 0, f"{active} places are taken when everything is over")

    async def _take_every_place_again(self) -> None:
        """As many children as the cap says, at all servers, and no more."""
        servers = len(self._fleet.servers)
        lines = [Line(self._fleet, number % servers) for number in range(self._cap + servers)]
        try:
            taken = await asyncio.gather(*map(self._spawned, lines[: self._cap]))
            held = [run_id for run_id in taken if run_id is not None]
            free = f"of {self._cap} places only {len(held)} are free at the end"
            self.ledger.must(len(held) == self._cap, free)
            more = await asyncio.gather(*map(self._spawned, lines[self._cap :]))
            held += [run_id for run_id in more if run_id is not None]
            self.ledger.must(len(held) <= self._cap, f"{len(held)} places are taken at the end")
            for run_id in held:
                status, said = await lines[0].ask("POST", f"/v1/runs/{run_id}/stop", {})
                assert status == 200, said
        finally:
            for line in lines:
                await line.close()

    async def _spawned(self, line: Line) -> str | None:
        requester = {"sessionKey": self._key}
        body = {"requester": requester, "agentId": "patient", "task": "wait", "cleanup": "delete"}
        status, answer = await line.ask("POST", "/v1/spawns", body)
        self.ledger.hear(status, answer)
        return str(answer["runId"]) if status == 201 else None


def verified(fleet: Fleet) -> subprocess.CompletedProcess[str]:
    """What `spawnlog log verify` says of the log of a fleet."""
    command = [sys.executable, "-m", "infrastructure.inbound.command_line.main"]
    command += ["log", "verify", "--data-dir", str(fleet.servers[0].data_dir)]
    return subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=VERIFY_SECONDS_MAX,
        check=False,
    )
