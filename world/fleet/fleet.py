"""Several server processes on one data directory, which are killed and started again."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from domain.run.lifecycle import SETTLED, RunStage
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

SETTLE_SECONDS_MAX = 60.0
PAGE = 500
QUEUE_EVENTS = ("MessageQueued", "MessageReceived", "MessagesDropped", "ContinuationFailed")
UNSETTLED = sorted({*get_args(RunStage)} - SETTLED - {"unborn"})


class Fleet:
    """The servers. `deaths` has for each kill the server, when it was, and when that was back: in
    nanoseconds of the monotonic clock."""

    def __init__(
        self, home: Path, config: Mapping[str, Any], servers: int, database_url: str = ""
    ) -> None:
        self.servers = [Server(home, config, database_url=database_url) for _ in range(servers)]
        for number, server in enumerate(self.servers):
            server.log_path = home.with_name(f"server-{number}.log")
        self.deaths: list[tuple[int, int, int]] = []
        self._away: set[int] = set()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Run all servers until the end of the block."""
        first, *others = self.servers
        with ThreadPoolExecutor(len(self.servers)) as threads:
            try:
                # It makes the database and the token.
                first.start()
                list(threads.map(Server.start, others))
                yield
            finally:
                list(threads.map(Server.stop, self.servers))

    async def kill(self, number: int) -> None:
        """Kill a server with SIGKILL and start it again. It gets no requests until it is back."""
        self._away.add(number)
        began = time.monotonic_ns()
        returning = asyncio.create_task(asyncio.to_thread(self._again, number))
        try:
            await asyncio.shield(returning)
        except asyncio.CancelledError:
            # A thread cannot be cancelled, and the code that stops the servers must find all of
            # them.
            await returning
            raise
        self.deaths.append((number, began, time.monotonic_ns()))
        self._away.remove(number)

    def _again(self, number: int) -> None:
        self.servers[number].kill()
        self.servers[number].start()

    def up(self) -> list[int]:
        """Return the numbers of the servers that can be asked."""
        return [number for number in range(len(self.servers)) if number not in self._away]

    def settle(self, *, quiet_seconds: float = 0.0) -> None:
        """Wait until every run is announced or refused, no message waits, and the log has been
        quiet for `quiet_seconds`.

        A message may wait until the claim of a killed server has expired.

        Raises:
            AssertionError: It takes too long; a caller may still be asking.
        """
        quiet = (0, 0.0)

        def is_settled() -> bool:
            nonlocal quiet
            head = self._head()
            if head != quiet[0]:
                quiet = (head, time.monotonic())
            if time.monotonic() - quiet[1] < quiet_seconds:
                return False
            stages = (self.read("/v1/runs", stage=stage, limit=1)["items"] for stage in UNSETTLED)
            # Neither of two consecutive looks sees work that began between them.
            return not any(stages) and not self._waiting() and self._head() == head

        wait_for("every run to be over", is_settled, seconds=SETTLE_SECONDS_MAX)

    def _head(self) -> int:
        return int(self.read("/v1/events", limit=1)["head"])

    def _waiting(self) -> set[str]:
        """Return the ids of the runs that queued messages will become."""
        waiting = set[str]()
        for event in self.events(types=",".join(QUEUE_EVENTS)):
            payload = event["payload"]
            match event["type"]:
                case "MessageQueued":
                    waiting.add(payload["runId"])
                case "MessageReceived":
                    waiting.discard(event["runId"])
                case "MessagesDropped":
                    waiting.difference_update(payload["runIds"])
                case "ContinuationFailed":
                    waiting.discard(payload["runId"])
        return waiting

    def events(self, **query: str) -> Iterator[Mapping[str, Any]]:
        """Yield the events of the log that match the query."""
        after, head = 0, -1
        while after != head:
            page = self.read("/v1/events", after=after, limit=PAGE, **query)
            yield from page["items"]
            after, head = page["nextAfter"], page["head"]

    def read(self, path: str, **query: str | int) -> dict[str, Any]:
        """Return an answer of the first server, once it responds."""

        def answered() -> dict[str, Any] | None:
            answer = self.servers[0].http.get(path, params=query)
            assert answer.status_code in (200, 503), answer.text
            return dict(answer.json()) if answer.status_code == 200 else None

        return wait_for(f"an answer to {path}", answered)
