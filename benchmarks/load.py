"""Callers over HTTP/1.1 with kept connections: raw, so that the client costs little."""

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

ANSWER_SECONDS_MAX = 60.0


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


_numbers = itertools.count()


async def spawn(connection: Connection) -> str:
    """One accepted spawn, for a requester of its own, so that no cap is in the way."""
    body = {
        "requester": {"sessionKey": f"agent:main:bench-{next(_numbers)}"},
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
    path = f"/v1/runs/{run_id}?wait=30s&until=archived"
    status, answer = await connection.ask("GET", path)
    if status != 200 or json.loads(answer)["stage"] != "archived":
        raise RuntimeError(f"run {run_id} was not archived: {status} {answer[:300]!r}")


async def measure(
    act: Callable[[], Awaitable[object]] | None,
    callers: int,
    seconds: float,
    make: Callable[[], Awaitable[Callable[[], Awaitable[object]]]] | None = None,
) -> tuple[list[float], float]:
    """Latencies in seconds, and how long it took: `callers` at once, each as fast as it is
    answered. `make` gives each caller an act of its own."""
    latencies: list[float] = []
    acts = [await make() if make else act for _ in range(callers)]
    began = time.perf_counter()

    async def call(one: Callable[[], Awaitable[object]] | None) -> None:
        assert one is not None
        while time.perf_counter() - began < seconds:
            started = time.perf_counter()
            await one()
            latencies.append(time.perf_counter() - started)

    await asyncio.gather(*(call(one) for one in acts))
    return latencies, time.perf_counter() - began
