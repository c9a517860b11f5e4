"""Server-sent events: the log as it grows, for one reader."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from application.log.envelope import RecordedEvent
from application.log.event_log import Tail
from application.queries.views.event import event_view
from infrastructure.inbound.http.middleware.disconnects import connection_dropper
from infrastructure.inbound.http.responses.problems import HttpProblem

MEDIA_TYPE = "text/event-stream"
CHECKPOINT_EVENTS = 100
_log = logging.getLogger("spawnlog.http")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """How a stream deals with time and with slowness. A reader is too slow when its buffer is full
    and it takes nothing off for `stuck_seconds`."""

    buffer_events_max: int = 1_000
    comment_seconds: float = 15.0
    stuck_seconds: float = 10.0
    closing_look_seconds: float = 0.25


class OpenStreams:
    """How many streams are open, and how many may be: the rest of the files is for others."""

    def __init__(self, streams_max: int) -> None:
        self._streams_max = streams_max
        self._open = 0

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Count a stream as long as the block lasts. Raises `HttpProblem` when there are too
        many."""
        if self._open >= self._streams_max:
            raise HttpProblem(
                "unavailable",
                f"this server has {self._streams_max} event streams open, half of the files that it"
                " may open (ulimit -n), and takes no more; close one, or start it with a higher"
                " limit",
                headers={"Retry-After": "10"},
            )
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class Frames:
    """Events as frames. What is filtered shows as `checkpoint` now and then, so that a reader
    that resumes need not go through it again."""

    def __init__(
        self, takes: Callable[[RecordedEvent], bool], *, after: int, filtered: bool
    ) -> None:
        self._takes = takes
        self._filtered = filtered
        self._position = after
        self._sent = after

    def frame(self, recorded: RecordedEvent) -> bytes | None:
        """The frame of an event; None for one that is filtered and needs no checkpoint yet."""
        self._position = recorded.envelope.position
        if self._takes(recorded):
            self._sent = self._position
            return _frame(self._position, recorded.envelope.type, event_view(recorded).json_bytes())
        if self._position - self._sent >= CHECKPOINT_EVENTS:
            return self.checkpoint()
        return None

    def pause(self) -> bytes:
        """What is sent when nothing happened for a while."""
        if self._filtered and self._position > self._sent:
            return self.checkpoint()
        return b": nothing new\n\n"

    def checkpoint(self) -> bytes:
        """The position up to which the reader has everything."""
        self._sent = self._position
        return _frame(self._position, "checkpoint", b'{"position":%d}' % self._position)


def _frame(position: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), data)


class EventStream(StreamingResponse):
    """The frames behind `after`, until the reader leaves, is too slow, or the service stops. A
    bounded buffer stands between the log and the reader."""

    def __init__(
        self,
        frames: Frames,
        tail: Tail,
        after: int,
        closing: Callable[[], bool],
        *,
        headers: Mapping[str, str],
        streams: OpenStreams,
        pace: StreamLimits | None = None,
    ) -> None:
        self._frames = frames
        self._tail = tail
        self._after = after
        self._closing = closing
        self._streams = streams
        self._pace = pace or StreamLimits()
        self._buffer: asyncio.Queue[RecordedEvent | None] = asyncio.Queue(
            self._pace.buffer_events_max
        )
        super().__init__(
            self._chunks(),
            media_type=MEDIA_TYPE,
            headers={**headers, "X-Accel-Buffering": "no"},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Fill, send and listen for the reader's leaving, until one of them is over."""
        with self._streams.slot():
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = [
            asyncio.create_task(self._fill(connection_dropper(scope))),
            asyncio.create_task(self.stream_response(send)),
            asyncio.create_task(self.listen_for_disconnect(receive)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for one in ended:
            if isinstance(one, Exception):
                raise one

    async def _chunks(self) -> AsyncIterator[bytes]:
        yield b"retry: 1000\n: spawnlog\n\n"
        spoken = time.monotonic()
        while not self._closing():
            frame = None
            try:
                async with asyncio.timeout(self._look_seconds()):
                    recorded = await self._buffer.get()
            except TimeoutError:
                pass
            else:
                if recorded is None:
                    return
                frame = self._frames.frame(recorded)
            if frame is None and time.monotonic() - spoken >= self._pace.comment_seconds:
                frame = self._frames.pause()
            if frame is not None:
                yield frame
                spoken = time.monotonic()

    def _look_seconds(self) -> float:
        return min(self._pace.closing_look_seconds, self._pace.comment_seconds)

    async def _fill(self, drop: Callable[[], None] | None) -> None:
        """Ends only when the reader is too slow and its connection cannot be dropped: a dropped
        one is a reader that has left."""
        try:
            async for recorded in self._tail.follow(after=self._after):
                if not await self._taken(recorded):
                    _log.info("a stream of events ends: its reader is too slow")
                    if drop is None:
                        return
                    drop()
                    await asyncio.Event().wait()
        except Exception as error:
            # The reader gets what there is, and an end by which it knows to resume.
            _log.warning("a stream of events ends: the log cannot be followed: %r", error)
        await self._buffer.put(None)
        await asyncio.Event().wait()

    async def _taken(self, recorded: RecordedEvent) -> bool:
        try:
            async with asyncio.timeout(self._pace.stuck_seconds):
                await self._buffer.put(recorded)
        except TimeoutError:
            return False
        return True
