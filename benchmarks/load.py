"""Callers over HTTP/1.1 with kept connections: raw, so that the client costs little."""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

ANSWER_SECONDS_MAX = 60.0
SETTLE_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.2

Act = Callable[[], Awaitable[object]]


class Connection:
    """One kept connection."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._common = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def close(self) -> None:
        """Disconnect."""
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Status and body of an answer."""
        assert self._reader is not None
        assert self._writer is not None
        head = f"{method} {path} HTTP/1.1\r\n{self._common}Content-Length: {len(body)}\r\n"
        if body:
            head += "Content-Type: application/json\r\n"
        self._writer.write(head.encode() + b"\r\n" + body)
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            answer = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            length = next(
                int(line.split(b":", 1)[1])
                for line in answer
                if line.lower().startswith(b"content-length:")
            )
            return int(answer[0].split(b" ", 2)[1]), await self._reader.readexactly(length)

    async def read(self, path: str) -> dict[str, Any]:
        """The body of a read. RuntimeError for any other answer than 200."""
        status, answer = await self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path} was answered with {status}: {answer[:300]!r}")
        return dict(json.loads(answer))


_numbers = itertools.count()


async def spawn(connection: Connection) -> str:
    """One accepted spawn, for a requester of its own, so that no cap is in the way."""
    body = {
        "requester": {"sessionKey": f"agent:main:bench-{next(_numbers):016}"},
        "task": "Count to nothing and say that it is done.",
        "cleanup": "delete",
    }
    status, answer = await connection.ask("POST", "/v1/spawns", json.dumps(body).encode())
    if status != 201:
        raise RuntimeError(f"the spawn was answered with {status}: {answer[:300]!r}")
    return str(json.loads(answer)["runId"])


async def life(connection: Connection) -> None:
    """One whole life: spawned, executed, announced, archived."""
    run_id = await spawn(connection)
    run = await connection.read(f"/v1/runs/{run_id}?wait=30s&until=archived")
    if (run["stage"], run["outcome"]) != ("archived", "success"):
        raise RuntimeError(f"run {run_id} came to {run['stage']} with {run['outcome']}")


async def settled(connection: Connection) -> None:
    """Wait until every run is archived: what one measurement left must not burden the next."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    for stage in ("queued", "started", "ended", "announced"):
        while (await connection.read(f"/v1/runs?limit=1&stage={stage}"))["items"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"runs were still {stage} after {SETTLE_SECONDS_MAX:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Measured:
    """How long each act took, in seconds, and how long all of them together."""

    latencies: list[float]
    seconds: float


async def measure(acts: Sequence[Act], seconds: float) -> Measured:
    """All acts at once, each again and again as fast as it ends, for this long."""
    latencies: list[float] = []
    began = time.perf_counter()

    async def repeat(act: Act) -> None:
        while (started := time.perf_counter()) - began < seconds:
            await act()
            latencies.append(time.perf_counter() - started)

    async with asyncio.TaskGroup() as callers:
        for act in acts:
            callers.create_task(repeat(act))
    return Measured(latencies, time.perf_counter() - began)
