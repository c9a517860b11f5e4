"""Callers over HTTP/1.1 on kept connections, without a client library, so that they cost little."""

import asyncio
import itertools
import json
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

ANSWER_SECONDS_MAX = 60.0
SETTLE_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.2
STREAM_BYTES = 1 << 20

Act = Callable[[], Awaitable[object]]


class Connection:
    """A kept connection."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._common = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            await self._writer.wait_closed()

    async def ask(
        self, method: str, path: str, body: bytes = b"", headers: str = ""
    ) -> tuple[int, bytes]:
        """Return status and body of a response. `headers` are further header lines."""
        assert self._reader is not None
        assert self._writer is not None
        head = f"{method} {path} HTTP/1.1\r\n{self._common}{headers}"
        head += f"Content-Length: {len(body)}\r\n"
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

    async def stream(self, path: str, events: int) -> int:
        """Read this many events of a stream, and return their number. The connection cannot be used
        again.

        Raises:
            RuntimeError: The stream ended early.
        """
        assert self._reader is not None
        assert self._writer is not None
        head = f"GET {path} HTTP/1.1\r\n{self._common}Accept: text/event-stream\r\n\r\n"
        self._writer.write(head.encode())
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"GET {path} was answered with {answer[:100]!r}")
        seen, rest = 0, b""
        while seen < events:
            read = await self._reader.read(STREAM_BYTES)
            if not read:
                raise RuntimeError(f"the stream ended after {seen} of {events} events")
            # A mark may come in two halves.
            text = rest + read
            seen += text.count(b"\nevent: ")
            rest = text[-len("event: ") :]
        return seen

    async def lines(self, path: str, body: bytes) -> list[bytes]:
        """Return the lines of a streamed response.

        Raises:
            RuntimeError: The status is not 200.
        """
        assert self._reader is not None
        assert self._writer is not None
        head = f"POST {path} HTTP/1.1\r\n{self._common}Content-Length: {len(body)}\r\n"
        self._writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200") or b"chunked" not in answer.lower():
            raise RuntimeError(f"POST {path} was answered with {answer[:300]!r}")
        chunks: list[bytes] = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            chunks.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return b"".join(chunks).splitlines()

    async def read(self, path: str) -> dict[str, Any]:
        """Return the body of a read.

        Raises:
            RuntimeError: The status is not 200.
        """
        status, answer = await self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"GET {path} was answered with {status}: {answer[:300]!r}")
        return dict(json.loads(answer))


TASK = "Count to nothing and say that it is done."


def requester(name: str) -> str:
    """Return the key of a unique requester. All keys have the same length."""
    return f"agent:main:bench-{name:0>24}"


class Spawner:
    """Spawns over one connection, each for a requester of its own, so that no cap is in the way.
    No two spawners of a server have the same name."""

    def __init__(
        self, connection: Connection, name: str, cleanup: str = "delete", *, has_keys: bool = False
    ) -> None:
        self._connection = connection
        self._name = name
        self._cleanup = cleanup
        self._has_keys = has_keys
        self._numbers = itertools.count()

    async def spawn(self) -> str:
        """Spawn a run and return its id."""
        body = {
            "requester": {"sessionKey": requester(f"{self._name}-{next(self._numbers)}")},
            "task": TASK,
            "cleanup": self._cleanup,
        }
        key = f"Idempotency-Key: {uuid.uuid4()}\r\n" if self._has_keys else ""
        status, answer = await self._connection.ask(
            "POST", "/v1/spawns", json.dumps(body).encode(), key
        )
        if status != 201:
            raise RuntimeError(f"the spawn was answered with {status}: {answer[:300]!r}")
        return str(json.loads(answer)["runId"])

    async def life(self) -> None:
        """Spawn a run and wait until it is archived."""
        run_id = await self.spawn()
        run = await self._connection.read(f"/v1/runs/{run_id}?wait=30s&until=archived")
        if (run["stage"], run["outcome"]) != ("archived", "success"):
            raise RuntimeError(f"run {run_id} came to {run['stage']} with {run['outcome']}")


SESSIONS_EACH = 16
"""Sessions that one caller sends messages to in turn, so that the run of one is over when its turn
comes.
"""
BUSY_SECONDS = 0.05
MESSAGE = json.dumps({"message": "And once more, please."}).encode()


class Talker:
    """Caller that sends messages over one connection, to its own sessions in turn."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._spawner = Spawner(connection, name, cleanup="keep")
        self._runs: deque[str] = deque()

    async def begin(self, sessions: int = SESSIONS_EACH) -> None:
        """Spawn the sessions, and wait until all of them can be talked to."""
        self._runs.extend([await self._spawner.spawn() for _ in range(sessions)])
        for run_id in self._runs:
            await self._connection.read(f"/v1/runs/{run_id}?wait=30s&until=announced")

    async def message(self) -> str:
        """Send a message and return the id of its run. Wait while the session is active."""
        run_id = self._runs[0]
        self._runs.rotate(-1)
        while True:
            status, answer = await self._connection.ask(
                "POST", f"/v1/runs/{run_id}/messages", MESSAGE
            )
            run = json.loads(answer)
            if status == 201:
                return str(run["runId"])
            if run.get("code") != "run_active":
                raise RuntimeError(f"the message was answered with {status}: {answer[:300]!r}")
            await asyncio.sleep(BUSY_SECONDS)


AT_WORK = (
    *("requested", "scripts-resolved", "overridden", "session-created"),
    *("queued", "started", "ended"),
)
"""Stages of a run before it is announced."""


async def settled(connection: Connection, stages: Sequence[str] = (*AT_WORK, "announced")) -> None:
    """Wait until no run is in these stages, by default until every run is archived.

    The work that one measurement leaves must not slow the next.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    for stage in stages:
        while (await connection.read(f"/v1/runs?limit=1&stage={stage}"))["items"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"runs were still {stage} after {SETTLE_SECONDS_MAX:.0f} s")
            await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Measured:
    """Latency of each act in seconds, duration of all, and the share of it in which the measuring
    process used the processor.
    """

    latencies: list[float]
    seconds: float
    client_cpu: float = 0.0


async def measure(acts: Sequence[Act], seconds: float) -> Measured:
    """Perform all acts concurrently, each repeatedly, for this time."""
    latencies: list[float] = []
    worked = time.process_time()
    began = time.perf_counter()

    async def repeat(act: Act) -> None:
        while (started := time.perf_counter()) - began < seconds:
            await act()
            latencies.append(time.perf_counter() - started)

    async with asyncio.TaskGroup() as callers:
        for act in acts:
            callers.create_task(repeat(act))
    seconds = time.perf_counter() - began
    return Measured(latencies, seconds, (time.process_time() - worked) / seconds)
