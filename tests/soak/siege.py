"""Real servers on one data directory, which are killed and started again while they are used."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.models.waiting_messages import QUEUE_EVENTS, note
from tests.support.servers.embedded_servers import postmaster_of
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked_server import BOUND
from tests.support.servers.running_server import RunningServer, configuration, scripted, wait_for

CAP = 3
LEASE_SECONDS = 3.0
PAUSE_SECONDS = (1.0, 4.0)
DATABASE_STOPS = 0.25
SETTLE_SECONDS_MAX = 60.0
QUIET_SECONDS = 3.0
UNSETTLED = ("requested", "scripts-resolved", "overridden", "session-created", "queued")
UNSETTLED_TOO = ("started", "ended")
PAGE = 500
HOOKS = ("subagentSpawning", "subagentEnded")


def agents(hooks: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with children that are quick, slow, long or fail, under a small cap. Threads
    are bound by these hooks."""
    pause = [{"afterMs": 150}]
    config = configuration(
        {**scripted("main"), "default": True},
        scripted("quick"),
        scripted("slow", steps=pause),
        scripted("long", steps=[{"afterMs": 4000}]),
        scripted("failing", outcome="error", error="the harbour is closed", steps=pause),
        scripted("stranger"),
        allowAgents=["quick", "slow", "long", "failing", "ghost"],
        maxSpawnDepth=2,
        maxChildrenPerAgent=CAP,
        maxConcurrent=8,
    )
    config["spawnlog"] = {"leaseSeconds": LEASE_SECONDS, "drainSeconds": 2, "hooks": dict(hooks)}
    return config


class Siege:
    """The servers, and what is done to them. The first of several lives through it: what it leaks
    is in `descriptors`, counted when it has started and before each fault."""

    def __init__(self, folder: Path, servers: int, die: random.Random) -> None:
        self._home = folder / "data"
        self._die = die
        self._down: set[int] = set()
        self._quiet = (0, 0.0)
        self.faults: Counter[str] = Counter()
        self.descriptors: list[int] = []
        self._outside = HookServer()
        self._outside.replies("subagentSpawning", Reply(said=BOUND))
        config = agents(self._outside.hooks(*HOOKS))
        self.servers = [RunningServer(self._home, config) for _ in range(servers)]
        for number, server in enumerate(self.servers):
            server.log_path = folder / f"server-{number}.log"

    @contextmanager
    def standing(self) -> Iterator[None]:
        """All servers until the end of the block."""
        with ExitStack() as stack:
            stack.enter_context(self._outside)
            for server in self.servers:
                stack.enter_context(server)
            self.descriptors.append(self.servers[0].descriptors())
            yield

    async def attack(self, stop: asyncio.Event) -> None:
        """Kill one server after the other, or their database, until told to stop."""
        mortal = range(len(self.servers))[1:] or range(1)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._die.uniform(*PAUSE_SECONDS))
            if stop.is_set():
                return
            self.descriptors.append(self.servers[0].descriptors())
            if self._is_for_the_database():
                os.kill(postmaster_of(self._home / "postgres"), signal.SIGQUIT)
                self.faults["database stopped at once"] += 1
            else:
                await self._kill(self._die.choice(mortal))
                self.faults["server killed"] += 1

    def _is_for_the_database(self) -> bool:
        """Both kinds come soon, the rest is left to the die."""
        if self.faults.total() < 2:
            return self.faults.total() == 1
        return self._die.random() < DATABASE_STOPS

    async def _kill(self, number: int) -> None:
        """Whoever waits for its answer loses its connection; nobody new asks until it is back."""
        server = self.servers[number]
        server.kill()
        self._down.add(number)
        await asyncio.to_thread(server.start)
        self._down.discard(number)

    def up(self) -> list[int]:
        """The servers that can be asked now, by their numbers."""
        return [number for number in range(len(self.servers)) if number not in self._down]

    def settle(self) -> bool:
        """Wait until every run is announced or refused and no message waits, as it does until the
        claim of a server that was killed has run out; False when that does not come."""
        try:
            wait_for("every run to be over", self._is_settled, seconds=SETTLE_SECONDS_MAX)
        except AssertionError as late:
            print(late)
            return False
        return True

    def _is_settled(self) -> bool:
        head = int(self._read("/v1/events", after=0, limit=1)["head"])
        now = time.monotonic()
        if head != self._quiet[0]:
            self._quiet = (head, now)
        if now - self._quiet[1] < QUIET_SECONDS or self._queued():
            return False
        stages = (*UNSETTLED, *UNSETTLED_TOO)
        if any(self._read("/v1/runs", stage=stage, limit=1)["items"] for stage in stages):
            return False
        # What has begun between two of these looks was seen by none of them.
        return int(self._read("/v1/events", after=0, limit=1)["head"]) == head

    def _queued(self) -> set[str]:
        waiting = set[str]()
        for event in self.events(types=",".join(QUEUE_EVENTS)):
            note(waiting, event)
        return waiting

    def events(self, **query: str) -> Iterator[Mapping[str, Any]]:
        """The whole log, or what of it is asked for."""
        after, head = 0, -1
        while after != head:
            page = self._read("/v1/events", after=after, limit=PAGE, **query)
            yield from page["items"]
            after, head = page["nextAfter"], page["head"]

    def inbox(self, session_key: str) -> Iterator[tuple[str, int]]:
        """The announcements of a session, as run and position."""
        after: int | None = 0
        while after is not None:
            page = self._read(f"/v1/sessions/{session_key}/announcements", after=after, limit=PAGE)
            yield from ((item["runId"], item["position"]) for item in page["items"])
            after = page["nextAfter"]

    def _read(self, path: str, **query: str | int) -> dict[str, Any]:
        """An answer of the first server, once it has one: its database may just be starting."""

        def answered() -> dict[str, Any] | None:
            answer = self.servers[0].http.get(path, params=query)
            assert answer.status_code in (200, 503), answer.text
            return dict(answer.json()) if answer.status_code == 200 else None

        return wait_for(f"an answer to {path}", answered)
