"""Server-sent events: the log as it grows, for one reader."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import orjson

from application.envelope import RecordedEvent
from application.ports.event_log import Tail
from infrastructure.inbound.http.event_bodies import event_body

COMMENT_SECONDS = 15.0
BUFFER_EVENTS_MAX = 1_000
CHECKPOINT_EVENTS = 100


class Frames:
    """Events as frames. What is filtered shows as `checkpoint` now and then, so that a reader
    that resumes need not go through it again."""

    def __init__(self, takes: Callable[[RecordedEvent], bool], *, filtered: bool) -> None:
        self._takes = takes
        self._filtered = filtered
        self._position = 0
        self._told = 0

    def frame(self, recorded: RecordedEvent) -> bytes | None:
        """The frame of an event; None for one that is filtered and needs no checkpoint yet."""
        self._position = recorded.envelope.position
        if self._takes(recorded):
            self._told = self._position
            return _frame(self._position, recorded.envelope.type, event_body(recorded))
        if self._position - self._told >= CHECKPOINT_EVENTS:
            return self.checkpoint()
        return None

    def pause(self) -> bytes:
        """What is sent when nothing happened for a while."""
        if self._filtered and self._position > self._told:
            return self.checkpoint()
        return b": nothing new\n\n"

    def checkpoint(self) -> bytes:
        """The position up to which the reader has everything."""
        self._told = self._position
        return _frame(self._position, "checkpoint", {"position": self._position})


def _frame(position: int, name: str, data: object) -> bytes:
    body = orjson.dumps(data, option=orjson.OPT_UTC_Z)
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), body)


async def stream(
    frames: Frames, tail: Tail, after: int, closing: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The frames behind `after`. A bounded buffer stands between the tail and the reader; when it
    is full the reader is too slow, and the stream ends."""
    buffer: asyncio.Queue[RecordedEvent | None] = asyncio.Queue(BUFFER_EVENTS_MAX)
    filling = asyncio.create_task(_fill(buffer, tail, after))
    try:
        yield b"retry: 1000\n: spawnlog\n\n"
        while not closing():
            try:
                async with asyncio.timeout(COMMENT_SECONDS):
                    recorded = await buffer.get()
            except TimeoutError:
                yield frames.pause()
                continue
            if recorded is None:
                return
            frame = frames.frame(recorded)
            if frame is not None:
                yield frame
    finally:
        filling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await filling


async def _fill(buffer: "asyncio.Queue[RecordedEvent | None]", tail: Tail, after: int) -> None:
    live_from = tail.position
    async for recorded in tail.follow(after=after):
        if recorded.envelope.position <= live_from:
            # What is already in the log can wait for the reader; what comes live cannot.
            await buffer.put(recorded)
            continue
        try:
            buffer.put_nowait(recorded)
        except asyncio.QueueFull:
            while not buffer.empty():
                buffer.get_nowait()
            buffer.put_nowait(None)
            return
