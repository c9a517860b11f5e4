"""Server-sent events to one reader."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from infrastructure.inbound.http.middleware.disconnects import connection_dropper
from infrastructure.inbound.http.responses.problems import HttpProblem

MEDIA_TYPE = "text/event-stream"
COMMENT = b": nothing new\n\n"
STUCK_SECONDS_MAX = 10.0
JSON = "application/json"
_WEIGHT = re.compile(r"q=(0(\.[0-9]{0,3})?|1(\.0{0,3})?)")
_log = logging.getLogger("spawnlog.http")


def frame(number: int, name: str, data: bytes) -> bytes:
    """Return the frame of an event. A reader that resumes sends `number` as `Last-Event-ID`."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (number, name.encode(), data)


def prefers_stream(request: Request) -> bool:
    """Return True if a request accepts an event stream at least as well as JSON."""
    weights: dict[str, float] = {}
    for accepted in ",".join(request.headers.getlist("accept")).lower().split(","):
        media_type, *parameters = (part.strip() for part in accepted.split(";"))
        weight = next((part for part in parameters if part.startswith("q=")), "q=1")
        weights[media_type] = float(weight[2:]) if _WEIGHT.fullmatch(weight) else 0
    return weights.get(MEDIA_TYPE, 0) > 0 and weights[MEDIA_TYPE] >= weights.get(JSON, 0)


class OpenStreams:
    """Limit on the number of open streams, which leaves files for other uses."""

    def __init__(self, streams_max: int) -> None:
        self._streams_max = streams_max
        self._open = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count a stream while the block runs. Raise HttpProblem if there are too many."""
        if self._open >= self._streams_max:
            raise HttpProblem(
                "unavailable",
                f"this server has {self._streams_max} event streams open, the maximum (half of"
                " ulimit -n); close one, or start the server with a higher limit",
                headers={"Retry-After": "10"},
            )
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class EventStream(StreamingResponse):
    """Response that sends frames until they end or the reader leaves.

    It also ends if the reader accepts nothing for `stuck_seconds`. A frame is made only after the
    reader has taken the one before.
    """

    def __init__(
        self,
        frames: AsyncGenerator[bytes],
        *,
        headers: Mapping[str, str],
        streams: OpenStreams,
        stuck_seconds: float = STUCK_SECONDS_MAX,
    ) -> None:
        self._chunks = _chunks(frames)
        self._streams = streams
        self._stuck_seconds = stuck_seconds
        super().__init__(
            self._chunks, media_type=MEDIA_TYPE, headers={**headers, "X-Accel-Buffering": "no"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until they end or the reader leaves."""
        with self._streams.slot():
            async with aclosing(self._chunks):
                await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        drop = connection_dropper(scope)

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(self._stuck_seconds):
                    await send(message)
            except TimeoutError:
                _log.info("event stream closed: its reader is too slow")
                if drop is None:
                    raise
                drop()
                # A reader whose connection was dropped counts as having left.
                await asyncio.Event().wait()

        tasks = [
            asyncio.create_task(self.stream_response(send_in_time)),
            asyncio.create_task(self.listen_for_disconnect(receive)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, TimeoutError):
                raise result


async def _chunks(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    yield b"retry: 1000\n: spawnlog\n\n"
    async with aclosing(frames):
        try:
            async for chunk in frames:
                yield chunk
        except Exception as error:
            # The reader gets the earlier frames, and an end of the stream that makes it resume.
            _log.warning("event stream closed: %r", error)
