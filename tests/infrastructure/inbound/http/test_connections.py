"""Silent, slow and stuck connections, and those that use the last files, on real sockets."""

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from infrastructure.inbound.http.middleware.disconnects import DroppableConnection, while_present
from infrastructure.inbound.http.middleware.open_files import OpenFiles
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import RequestGuard
from infrastructure.inbound.http.middleware.timed_connection import ArrivalLimits, TimedConnection
from infrastructure.inbound.http.operations import is_essential
from infrastructure.inbound.http.requests.event_stream import EventStream, OpenStreams
from infrastructure.inbound.http.routes.streams import Frames, event_frames
from tests.support.http.tail import GrowingLog
from tests.support.http.wire import head as request_head

pytestmark = pytest.mark.server


SECONDS_MAX = 20.0
BYTES_MAX = 65_536
QUICK = ArrivalLimits(
    headers_seconds=0.3,
    refused_headers_seconds=0.3,
    body_silence_seconds=0.3,
    body_seconds=1.0,
    check_seconds=0.05,
    unread_bytes=4_000,
)
MANY = OpenFiles(1_000_000)
HEAD = "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
GOOD = HEAD.format(method="GET", path="/v1/runs") + "\r\n"
HALF = HEAD.format(method="GET", path="/v1/runs") + "X-Half: "


def posted(length: int, path: str = "/v1/spawns") -> str:
    return HEAD.format(method="POST", path=path) + f"Content-Length: {length}\r\n\r\n"


class Server(uvicorn.Server):
    """Leaves the signals of the test's process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def head() -> int:
    return 7


left = asyncio.Event()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body.

    `/unread` reads none, `/stream` streams for a while, and `/wait` sets `left` when its caller has
    left.
    """
    request = Request(scope, receive)
    answer: JSONResponse | StreamingResponse
    if scope["path"] == "/wait":
        with pytest.raises(ClientDisconnect):
            await while_present(scope, asyncio.sleep(2 * SECONDS_MAX))
        left.set()
        return
    if scope["path"] == "/stream":
        answer = StreamingResponse(counted())
    elif scope["path"] == "/unread":
        answer = JSONResponse({}, 401)
    else:
        answer = JSONResponse({"bytes": len(await request.body())})
    await answer(scope, receive, send)


async def counted() -> AsyncIterator[bytes]:
    for number in range(12):
        yield b"%d\n" % number
        await asyncio.sleep(0.1)


class Line:
    """A connection to the server, as a hostile client has it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, text: str) -> None:
        self.writer.write(text.encode())

    async def drip(self, text: str, seconds: float) -> None:
        """Send a byte now and then until the server hangs up."""
        with contextlib.suppress(OSError):
            while not self.reader.at_eof():
                self.say(text)
                await self.writer.drain()
                await asyncio.sleep(seconds)

    async def rest(self) -> str:
        """Return everything until the server closes the connection."""
        with contextlib.suppress(ConnectionResetError):
            return (await self.reader.read()).decode()
        return ""

    async def lost(self, text: str) -> None:
        """Send until the server takes nothing more: it may have ended its own side before."""
        with contextlib.suppress(OSError):
            while True:
                self.say(text)
                await self.writer.drain()
                await asyncio.sleep(0.05)

    async def answer(self) -> tuple[int, dict[str, object]]:
        """Return one whole response with a length."""
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        sizes = [line.partition(": ")[2] for line in lines if line.startswith("content-length")]
        return int(lines[0].split()[1]), json.loads(await self.reader.readexactly(int(sizes[0])))


@contextlib.asynccontextmanager
async def serving(
    files: OpenFiles = MANY, limits: ArrivalLimits = QUICK
) -> AsyncIterator[tuple[str, int]]:
    marks = PositionHeaders("a-log", head, lambda: 0)
    guard = RequestGuard(application, {"127.0.0.1"}, marks, is_essential=is_essential)
    config = uvicorn.Config(
        guard,
        log_config=None,
        lifespan="off",
        ws="none",
        http=partial(TimedConnection, files=files, limits=limits),  # type: ignore[arg-type]
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with asyncio.timeout(SECONDS_MAX):
                yield listening.getsockname()
        finally:
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def line_to(address: tuple[str, int]) -> AsyncIterator[Line]:
    line = Line(*await asyncio.open_connection(*address))
    try:
        yield line
    finally:
        line.writer.close()


def problem_in(answer: str) -> str:
    return str(json.loads(answer.partition("\r\n\r\n")[2])["code"])


async def test_wait_ends_when_its_caller_leaves() -> None:
    async with serving() as address:
        async with line_to(address) as line:
            line.say(HEAD.format(method="GET", path="/wait") + "\r\n")
        await left.wait()


@pytest.mark.parametrize(
    ("requests", "begin", "more"),
    [(0, "", ""), (0, HALF, ""), (0, HALF, "x"), (1, HALF, ""), (1, "", "\r\n")],
    ids=["silence", "half", "dripping", "half of the second", "blank lines"],
)
async def test_header_that_does_not_end_is_hung_up(requests: int, begin: str, more: str) -> None:
    async with serving() as address, line_to(address) as line:
        for _ in range(requests):
            line.say(GOOD)
            assert (await line.answer())[0] == 200
        line.say(begin)
        dripping = asyncio.create_task(line.drip(more, 0.05))
        assert await line.rest() == ""
        await dripping


CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n1"
ENDLESS = {
    "blank lines": ("", "\r\n"),
    "target": ("GET /", "x"),
    "header": (HALF, "x"),
    "chunk extension": (CHUNKED.format(method="POST", path="/v1/runs") + ";", "x"),
    "trailer": (
        CHUNKED.format(method="POST", path="/v1/runs") + "\r\nx\r\n0\r\nX-Half: ",
        "x",
    ),
}
PATIENT = replace(
    QUICK, headers_seconds=1.0, body_silence_seconds=SECONDS_MAX, body_seconds=SECONDS_MAX
)


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
async def test_endless_request_is_431_and_closed(begin: str, more: str) -> None:
    async with serving(limits=PATIENT) as address, line_to(address) as line:
        line.say(begin)
        dripping = asyncio.create_task(line.drip(more * 1_000, 0.01))
        status, problem = await line.answer()
        assert (status, problem["code"]) == (431, "headers_too_large")
        assert "4000 bytes" in str(problem["detail"])
        assert await line.rest() == ""
        await dripping
        await line.lost(more)


async def test_endless_body_is_hung_up_after_its_answer() -> None:
    async with serving(limits=PATIENT) as address, line_to(address) as line:
        line.say(CHUNKED.format(method="POST", path="/unread") + ";")
        assert (await line.answer())[0] == 401
        dripping = asyncio.create_task(line.drip("x" * 1_000, 0.01))
        assert await line.rest() == ""
        await dripping


async def test_head_and_body_are_written_at_once() -> None:
    async with serving() as address, line_to(address) as line:
        for _ in range(2):
            line.say(GOOD)
            head, _, body = (await line.reader.read(BYTES_MAX)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert json.loads(body) == {"bytes": 0}


async def test_head_without_its_body_is_written() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(HEAD.format(method="HEAD", path="/v1/runs") + "\r\n")
        head = await line.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 11\r\n" in head
        line.say(GOOD)
        assert (await line.answer())[0] == 200


async def test_continue_is_written_before_the_answer() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(2).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n"))
        assert await line.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.say("{}")
        assert await line.answer() == (200, {"bytes": 2})


@pytest.mark.parametrize("length", [100, 16 * 1024 * 1024])
async def test_silent_body_is_408(length: int) -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(length) + "{")
        answer = await line.rest()
    assert answer.startswith("HTTP/1.1 408 ")
    assert problem_in(answer) == "too_slow"


async def test_dripping_body_is_408() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(1_000_000))
        dripping = asyncio.create_task(line.drip(" ", 0.05))
        assert "HTTP/1.1 408 " in await line.rest()
        await dripping


async def test_dripping_body_that_was_refused_unread_is_hung_up() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(1_000_000, "/unread"))
        assert (await line.answer())[0] == 401
        dripping = asyncio.create_task(line.drip(" ", 0.05))
        assert await line.rest() == ""
        await dripping


async def test_body_in_parts_is_taken() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(6_000))
        for _ in range(6):
            line.say("x" * 1_000)
            await asyncio.sleep(0.1)
        assert await line.answer() == (200, {"bytes": 6_000})


async def test_unread_body_cuts_no_long_answer() -> None:
    async with serving() as address, line_to(address) as line:
        line.say(posted(10, "/stream"))
        answer = await line.reader.readuntil(b"0\r\n\r\n")
    assert b"\r\n11\n\r\n" in answer


async def test_reserved_files_are_for_health_and_stops(caplog: pytest.LogCaptureFixture) -> None:
    async with line_free_number() as number:
        files = OpenFiles(number + 40)
        assert files.reserved > 30
        async with serving(files) as address:
            for method, path, expected in (
                ("GET", "/v1/runs", 503),
                ("GET", "/readyz", 200),
                ("GET", "/healthz", 200),
                ("POST", "/v1/runs/a/stop", 200),
                ("POST", "/v1/spawns", 503),
            ):
                async with line_to(address) as line:
                    line.say(HEAD.format(method=method, path=path) + "Content-Length: 0\r\n\r\n")
                    answer = await line.rest()
                    assert answer.startswith(f"HTTP/1.1 {expected} "), path
                    assert "connection: close" in answer.lower()
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "ulimit -n is" in warning.getMessage()


async def test_last_files_are_for_no_connection() -> None:
    async with line_free_number() as number:
        async with serving(OpenFiles(number + 2)) as address, line_to(address) as line:
            line.say(HEAD.format(method="GET", path="/healthz") + "\r\n")
            assert await line.rest() == ""


@contextlib.asynccontextmanager
async def line_free_number() -> AsyncIterator[int]:
    """Yield the number of the next file, or a smaller free one."""
    held = [socket.socket() for _ in range(200)]
    try:
        yield max(item.fileno() for item in held)
    finally:
        for connection in held:
            connection.close()


EVENTS = 20_000


async def test_reader_that_does_not_read_is_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, let_go = GrowingLog(), asyncio.Event()
    marks = PositionHeaders("a-log", head, lambda: 0)
    await log.grow(EVENTS)

    async def events(_: Request) -> EventStream:
        frames = Frames(lambda _: True, after=0, filtered=False)
        return EventStream(
            event_frames(frames, log, 0, lambda: False),
            headers={},
            streams=OpenStreams(1),
            stuck_seconds=0.3,
        )

    application = Starlette(routes=[Route("/v1/events", events)])

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        await RequestGuard(application, {"127.0.0.1"}, marks)(scope, receive, send)
        let_go.set()

    config = uvicorn.Config(
        streaming, log_config=None, lifespan="off", http=DroppableConnection, ws="none"
    )
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as reader:
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(SECONDS_MAX):
            await loop.sock_connect(reader, listening.getsockname())
            await loop.sock_sendall(
                reader, request_head("GET", "/v1/events", {"Host": "127.0.0.1"})
            )
            await let_go.wait()
            assert log.read < EVENTS
            assert not server.server_state.connections
            with contextlib.suppress(ConnectionResetError):
                while await loop.sock_recv(reader, 1_000_000):
                    pass
            server.should_exit = True
            await serving
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []
