"""A reader that stops reading, on a real connection: the server lets go of it."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from infrastructure.inbound.http.middleware.disconnects import DroppableConnection
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import RequestGuard
from infrastructure.inbound.http.requests.event_stream import EventStream, OpenStreams
from infrastructure.inbound.http.routes.streams import Frames, event_frames
from tests.support.http.tail import GrowingLog
from tests.support.http.wire import head

pytestmark = pytest.mark.server

EVENTS = 20_000
SECONDS_MAX = 20.0


class Server(uvicorn.Server):
    """Leaves the signals of the test's process alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def nowhere() -> int:
    return 0


async def test_a_reader_that_does_not_read_is_disconnected_and_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log, let_go = GrowingLog(), asyncio.Event()
    marks = PositionHeaders("a-log", nowhere, lambda: 0)
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
            await loop.sock_sendall(reader, head("GET", "/v1/events", {"Host": "127.0.0.1"}))
            await let_go.wait()
            assert log.read < EVENTS
            assert not server.server_state.connections
            with contextlib.suppress(ConnectionResetError):
                while await loop.sock_recv(reader, 1_000_000):
                    pass
            server.should_exit = True
            await serving
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []
