"""Servers on one data directory, which are killed and started again while they are used."""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.servers.embedded_servers import postmaster_of
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.hooked import BOUND
from world.fleet.fleet import PAGE, Fleet
from world.society.agents import HOOKS, society
from world.society.callers import Habits


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Conditions of a siege.

    `paces` and `settings` are arguments of `society`. A fault comes after a pause of
    `pause_seconds`; `database_stops` is the share of faults that hit the database. The siege lasts
    until at least `accepted_min` spawns were accepted.
    """

    cap: int
    servers: int
    callers: int
    habits: Habits
    paces: Mapping[str, Sequence[int]]
    settings: Mapping[str, Any]
    pause_seconds: tuple[float, float]
    database_stops: float = 0.0
    accepted_min: int = 0


class Siege(Fleet):
    """Servers under attack.

    The first of several is never killed. Its open files are counted in `descriptors`, after its
    start and before each fault, so that leaks show.
    """

    def __init__(self, folder: Path, terms: Terms, die: random.Random) -> None:
        self._home = folder / "data"
        self._terms = terms
        self._die = die
        self.faults: Counter[str] = Counter()
        self.descriptors: list[int] = []
        self._outside = HookServer()
        self._outside.replies("subagentSpawning", Reply(body=BOUND))
        hooks = self._outside.hooks(*HOOKS)
        config = society(terms.paces, cap=terms.cap, hooks=hooks, **terms.settings)
        super().__init__(self._home, config, terms.servers)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Run all servers until the end of the block; at the end, replay every decision."""
        with self._outside, super().standing():
            self.descriptors.append(self.servers[0].descriptors())
            yield
            assert not (differing := self.servers[0].differing_decisions()), differing

    async def attack(self, stop: asyncio.Event) -> None:
        """Kill one server after the other, or their database, until `stop` is set."""
        mortal = range(len(self.servers))[1:] or range(1)
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._die.uniform(*self._terms.pause_seconds))
            if stop.is_set():
                return
            self.descriptors.append(self.servers[0].descriptors())
            if self._is_for_the_database():
                os.kill(postmaster_of(self._home / "postgres"), signal.SIGQUIT)
                self.faults["database stopped at once"] += 1
            else:
                await self.kill(self._die.choice(mortal))
                self.faults["server killed"] += 1

    def _is_for_the_database(self) -> bool:
        """Return True if the next fault hits the database. The first two are of different kinds."""
        if self._terms.database_stops and self.faults.total() < 2:
            return self.faults.total() == 1
        return self._die.random() < self._terms.database_stops

    def inbox(self, session_key: str) -> Iterator[tuple[str, int]]:
        """Yield the announcements of a session, as run and position."""
        after: int | None = 0
        while after is not None:
            page = self.read(f"/v1/sessions/{session_key}/announcements", after=after, limit=PAGE)
            yield from ((item["runId"], item["position"]) for item in page["items"])
            after = page["nextAfter"]
