"""Several servers on one data directory, which are killed and come back, and lines to them."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

from benchmarks.load import Connection
from domain.run.lifecycle import SETTLED, RunStage
from tests.support.servers.server import Server
from tests.support.waiting import wait_for
from world.fleet.waiting_messages import QUEUE_EVENTS, note

IDLE_SECONDS_MAX = 10.0
SETTLE_SECONDS_MAX = 60.0
PAGE = 500
UNSETTLED = sorted({*get_args(RunStage)} - SETTLED - {"unborn"})


class Fleet:
    """The servers. `lives` says how often each of them was started."""

    def __init__(
        self, home: Path, config: Mapping[str, Any], servers: int, database_url: str = ""
    ) -> None:
        self.servers = [Server(home, config, database_url=database_url) for _ in range(servers)]
        for number, server in enumerate(self.servers):
            server.log_path = home.with_name(f"server-{number}.log")
        self.lives = [1] * servers
        self._away: dict[int, asyncio.Event] = {}

    @contextmanager
    def standing(self) -> Iterator[None]:
        """All servers until the end of the block."""
        first, *others = self.servers
        with ThreadPoolExecutor(len(self.servers)) as threads:
            try:
                # It makes the database and the token.
                first.start()
                list(threads.map(Server.start, others))
                yield
            finally:
                list(threads.map(Server.stop, self.servers))

    @property
    def kills(self) -> int:
        """How many servers were killed so far."""
        return sum(self.lives) - len(self.lives)

    def reload(self, config: Mapping[str, Any]) -> None:
        """Give all of them another configuration, and wait until each works by it."""
        first = self.servers[0]
        assert first.config is not None
        assert first.process is not None
        text = json.dumps(config)
        if first.config.read_text("utf-8") == text:
            return
        before = [len(server.log()) for server in self.servers]
        first.config.write_text(text, "utf-8")
        first.process.send_signal(signal.SIGHUP)
        for server, seen in zip(self.servers, before, strict=True):
            wait_for("the reload", partial(_is_reloaded, server, seen))

    async def kill(self, number: int) -> None:
        """kill -9, and start it again. Whoever asks it waits until it is back."""
        self.lives[number] += 1
        back = self._away[number] = asyncio.Event()
        returning = asyncio.create_task(asyncio.to_thread(self._again, number))
        try:
            await asyncio.shield(returning)
        except asyncio.CancelledError:
            # A thread cannot be called back, and whoever stops the servers must find all of them.
            await returning
            raise
        del self._away[number]
        back.set()

    def _again(self, number: int) -> None:
        self.servers[number].kill()
        self.servers[number].start()

    def is_there(self, number: int) -> bool:
        """Whether this server can be asked now."""
        return number not in self._away

    def up(self) -> list[int]:
        """The servers that can be asked now, by their numbers."""
        return [number for number in range(len(self.servers)) if self.is_there(number)]

    def settle(self, *, quiet_seconds: float = 0.0) -> None:
        """Wait until every run is announced or refused, no message waits, as it does until the
        claim of a server that was killed has run out, and nothing was recorded for so long.
        AssertionError when that does not come: somebody may be asking still."""
        quiet = (0, 0.0)

        def is_settled() -> bool:
            nonlocal quiet
            head = self._head()
            if head != quiet[0]:
                quiet = (head, time.monotonic())
            if time.monotonic() - quiet[1] < quiet_seconds:
                return False
            stages = (self.read("/v1/runs", stage=stage, limit=1)["items"] for stage in UNSETTLED)
            # What has begun between two of these looks was seen by none of them.
            return not any(stages) and not self._waiting() and self._head() == head

        wait_for("every run to be over", is_settled, seconds=SETTLE_SECONDS_MAX)

    def _head(self) -> int:
        return int(self.read("/v1/events", limit=1)["head"])

    def _waiting(self) -> set[str]:
        waiting = set[str]()
        for event in self.events(types=",".join(QUEUE_EVENTS)):
            note(waiting, event)
        return waiting

    def events(self, **query: str) -> Iterator[Mapping[str, Any]]:
        """The whole log, or what of it is asked for."""
        after, head = 0, -1
        while after != head:
            page = self.read("/v1/events", after=after, limit=PAGE, **query)
            yield from page["items"]
            after, head = page["nextAfter"], page["head"]

    def read(self, path: str, **query: str | int) -> dict[str, Any]:
        """An answer of the first server, once it has one: it may just have come back."""

        def answered() -> dict[str, Any] | None:
            answer = self.servers[0].http.get(path, params=query)
            assert answer.status_code in (200, 503), answer.text
            return dict(answer.json()) if answer.status_code == 200 else None

        return wait_for(f"an answer to {path}", answered)

    async def until_there(self, number: int) -> None:
        """Wait until this server can be asked."""
        if (back := self._away.get(number)) is not None:
            await back.wait()


def _is_reloaded(server: Server, seen: int) -> bool:
    """Whether it says so behind what was seen of its log."""
    return "is active" in server.log()[seen:]


class LostWithItsServer(Exception):
    """The server died before it answered: nobody knows what became of the request."""


class Line:
    """A kept connection to one server, made anew for each of its lives."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self._fleet = fleet
        self._number = number
        self._life = 0
        self._used = 0.0
        self._connection: Connection | None = None

    async def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer. `LostWithItsServer` when the server was killed meanwhile;
        AssertionError when the connection was lost and the server was not."""
        await self._fleet.until_there(self._number)
        life = self._fleet.lives[self._number]
        try:
            connection = await self._connected(life)
            sent = json.dumps(body).encode() if body is not None else b""
            status, answer = await connection.ask(method, path, sent)
        except (OSError, EOFError) as lost:
            await self.close()
            if self._fleet.lives[self._number] == life:
                raise AssertionError(f"server {self._number} lives and lost us: {lost!r}") from lost
            raise LostWithItsServer from lost
        self._used = time.monotonic()
        return status, json.loads(answer)

    async def _connected(self, life: int) -> Connection:
        # A server closes what nobody uses.
        is_fresh = time.monotonic() - self._used < IDLE_SECONDS_MAX
        if self._connection is None or self._life != life or not is_fresh:
            await self.close()
            server = self._fleet.servers[self._number]
            connection = Connection(server.url, server.token)
            await connection.open()
            self._connection, self._life = connection, life
        return self._connection

    async def close(self) -> None:
        """Disconnect; the next request connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                await connection.close()
