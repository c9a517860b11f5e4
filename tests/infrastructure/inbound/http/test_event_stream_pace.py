"""Streams and time: silence, slowness, ends; without a server, so that no test waits for long."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from uuid import uuid4

import pytest
from starlette.types import Message

from application.log.envelope import RecordedEvent
from infrastructure.inbound.http.requests.event_stream import EventStream, OpenStreams
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.routes.streams import (
    CHECKPOINT_EVENTS,
    Frames,
    StreamPace,
    event_frames,
)
from tests.support.http.tail import GrowingLog

SECONDS_MAX = 10.0
PACE = StreamPace(comment_seconds=5, closing_look_seconds=0.02)


class Reader:
    """Reader of a stream as an ASGI server permits; it may stop reading."""

    def __init__(self) -> None:
        self.taken = bytearray()
        self.complete = False
        self._takes = asyncio.Event()
        self._takes.set()
        self._gone = asyncio.Event()
        self._came = asyncio.Condition()

    def stop_taking(self) -> None:
        self._takes.clear()

    def leave(self) -> None:
        self._gone.set()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self._takes.wait()
        async with self._came:
            self.taken += message.get("body", b"")
            self.complete = not message.get("more_body", True)
            self._came.notify_all()

    async def until(self, part: bytes) -> None:
        async with asyncio.timeout(SECONDS_MAX), self._came:
            await self._came.wait_for(lambda: part in self.taken)


def everything(_: RecordedEvent) -> bool:
    return True


def nothing(_: RecordedEvent) -> bool:
    return False


@contextlib.asynccontextmanager
async def reading(
    log: GrowingLog,
    *,
    takes: Callable[[RecordedEvent], bool] = everything,
    after: int = 0,
    pace: StreamPace = PACE,
    stuck_seconds: float = 5,
    streams: OpenStreams | None = None,
) -> AsyncIterator[tuple[Reader, "asyncio.Task[None]"]]:
    reader = Reader()
    frames = Frames(takes, after=after, filtered=takes is not everything)
    response = EventStream(
        event_frames(frames, log, after, lambda: False, pace),
        headers={},
        streams=streams or OpenStreams(1),
        stuck_seconds=stuck_seconds,
    )
    serving = asyncio.create_task(response({"type": "http"}, reader.receive, reader.send))
    try:
        yield reader, serving
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError, HttpProblem):
            await serving


async def wait_for_end(serving: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(SECONDS_MAX):
        await serving


async def test_silence_is_filled_with_comments() -> None:
    log = GrowingLog()
    pace = StreamPace(comment_seconds=0.05)
    async with reading(log, pace=pace) as (reader, _):
        await reader.until(b": nothing new\n\n: nothing new\n\n")
        await log.grow()
        await reader.until(b"id: 1\n")


async def test_filtered_silence_has_one_checkpoint() -> None:
    log = GrowingLog()
    pace = StreamPace(comment_seconds=0.05)
    async with reading(log, takes=nothing, pace=pace) as (reader, _):
        await log.grow(3)
        await reader.until(b'id: 3\nevent: checkpoint\ndata: {"position":3}\n\n: nothing new')
    assert reader.taken.count(b"checkpoint") == 1


async def test_filtered_events_put_no_comment_off() -> None:
    log = GrowingLog()
    pace = StreamPace(comment_seconds=0.2, closing_look_seconds=5)
    async with reading(log, takes=nothing, pace=pace) as (reader, _):

        async def grow_on() -> None:
            while True:
                await log.grow()
                await asyncio.sleep(0.01)

        growing = asyncio.create_task(grow_on())
        await reader.until(b"event: checkpoint")
        growing.cancel()


async def test_many_filtered_events_are_checkpoints() -> None:
    log, wanted = GrowingLog(), uuid4()
    await log.grow(CHECKPOINT_EVENTS * 2 + 10)
    await log.grow(run_id=wanted)

    def takes(recorded_event: RecordedEvent) -> bool:
        return recorded_event.envelope.provenance.run_id == wanted

    async with reading(log, takes=takes) as (reader, _):
        await reader.until(b"event: RunQueued")
    assert reader.taken.count(b"event: checkpoint") == 2


async def test_resume_far_into_log_is_no_gap() -> None:
    log = GrowingLog()
    await log.grow(CHECKPOINT_EVENTS * 3)
    async with reading(log, takes=nothing, after=CHECKPOINT_EVENTS * 3 - 5) as (reader, _):
        await reader.until(b"retry: 1000")
        await log.grow(CHECKPOINT_EVENTS)
        await reader.until(b"checkpoint")
    assert reader.taken.count(b"checkpoint") == 1


async def test_reader_that_takes_nothing_is_left() -> None:
    log = GrowingLog()
    async with reading(log, stuck_seconds=0.1) as (reader, serving):
        await reader.until(b"retry: 1000")
        reader.stop_taking()
        await log.grow(100)
        await wait_for_end(serving)
    assert not reader.complete
    assert log.read <= 2


async def test_lost_log_ends_stream_after_what_came() -> None:
    log = GrowingLog()
    async with reading(log) as (reader, serving):
        await log.grow(3)
        await log.break_off(ConnectionError("the database is away"))
        await wait_for_end(serving)
    assert b"id: 3\n" in reader.taken
    assert reader.complete
    assert b"database" not in reader.taken


async def test_stream_over_limit_is_503_until_one_ends() -> None:
    log, streams = GrowingLog(), OpenStreams(1)
    async with reading(log, streams=streams) as (reader, serving):
        await reader.until(b"retry: 1000")
        async with reading(log, streams=streams) as (_, refused):
            with pytest.raises(HttpProblem, match=r"ulimit -n") as problem:
                await wait_for_end(refused)
            assert (problem.value.status, problem.value.code) == (503, "unavailable")
        reader.leave()
        await wait_for_end(serving)
    async with reading(log, streams=streams) as (reader, _):
        await reader.until(b"retry: 1000")
