"""Streams and time: silence, slowness, ends. Without a server, so that no test waits for long."""

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
    """One who reads a stream as an ASGI server would let it; it may stop taking."""

    def __init__(self) -> None:
        self.taken = bytearray()
        self.complete = False
        self._takes = asyncio.Event()
        self._takes.set()
        self._stuck = asyncio.Event()
        self._gone = asyncio.Event()
        self._came = asyncio.Condition()

    def stop_taking(self) -> None:
        self._takes.clear()
        self._stuck.clear()

    async def take_on_when_stuck(self) -> None:
        await self._stuck.wait()
        self._takes.set()

    def leave(self) -> None:
        self._gone.set()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self._takes.is_set():
            self._stuck.set()
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
    closing: Callable[[], bool] = lambda: False,
    pace: StreamPace = PACE,
    stuck_seconds: float = 5,
    streams: OpenStreams | None = None,
) -> AsyncIterator[tuple[Reader, "asyncio.Task[None]"]]:
    reader = Reader()
    frames = Frames(takes, after=after, filtered=takes is not everything)
    response = EventStream(
        event_frames(frames, log, after, closing, pace),
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


async def test_events_come_in_order_as_they_are_recorded() -> None:
    log = GrowingLog()
    async with reading(log) as (reader, _):
        await log.grow(3)
        await reader.until(b"id: 3\nevent: RunQueued\n")
        await log.grow(2)
        await reader.until(b"id: 5\n")
    ids = [line for line in reader.taken.split(b"\n") if line.startswith(b"id:")]
    assert ids == [b"id: 1", b"id: 2", b"id: 3", b"id: 4", b"id: 5"]


async def test_silence_is_filled_with_comments() -> None:
    log = GrowingLog()
    pace = StreamPace(comment_seconds=0.05)
    async with reading(log, pace=pace) as (reader, _):
        await reader.until(b": nothing new\n\n: nothing new\n\n")
        await log.grow()
        await reader.until(b"id: 1\n")


async def test_silence_behind_a_filter_is_filled_with_a_checkpoint_once() -> None:
    log = GrowingLog()
    pace = StreamPace(comment_seconds=0.05)
    async with reading(log, takes=nothing, pace=pace) as (reader, _):
        await log.grow(3)
        await reader.until(b'id: 3\nevent: checkpoint\ndata: {"position":3}\n\n: nothing new')
    assert reader.taken.count(b"checkpoint") == 1


async def test_what_is_filtered_does_not_put_the_comments_off() -> None:
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


async def test_much_that_is_filtered_shows_as_checkpoints() -> None:
    log, wanted = GrowingLog(), uuid4()
    await log.grow(CHECKPOINT_EVENTS * 2 + 10)
    await log.grow(run_id=wanted)

    def takes(one: RecordedEvent) -> bool:
        return one.envelope.provenance.run_id == wanted

    async with reading(log, takes=takes) as (reader, _):
        await reader.until(b"event: RunQueued")
    assert reader.taken.count(b"event: checkpoint") == 2


async def test_a_resume_far_behind_the_beginning_is_not_taken_for_a_long_gap() -> None:
    log = GrowingLog()
    await log.grow(CHECKPOINT_EVENTS * 3)
    async with reading(log, takes=nothing, after=CHECKPOINT_EVENTS * 3 - 5) as (reader, _):
        await reader.until(b"retry: 1000")
        await log.grow(CHECKPOINT_EVENTS)
        await reader.until(b"checkpoint")
    assert reader.taken.count(b"checkpoint") == 1


async def test_reader_that_takes_nothing_is_left_and_nothing_is_read_ahead() -> None:
    log = GrowingLog()
    async with reading(log, stuck_seconds=0.1) as (reader, serving):
        await reader.until(b"retry: 1000")
        reader.stop_taking()
        await log.grow(100)
        await wait_for_end(serving)
    assert not reader.complete
    assert log.read <= 2


async def test_a_slow_reader_of_a_long_past_gets_all_of_it() -> None:
    log = GrowingLog()
    await log.grow(60)
    async with reading(log) as (reader, serving):
        for _ in range(3):
            reader.stop_taking()
            await log.grow(10)
            await reader.take_on_when_stuck()
        await reader.until(b"id: 90\n")
        assert not serving.done()


async def test_a_reader_that_leaves_ends_the_stream() -> None:
    log = GrowingLog()
    async with reading(log) as (reader, serving):
        await reader.until(b"retry: 1000")
        reader.leave()
        await wait_for_end(serving)


async def test_a_service_that_stops_ends_the_stream_in_good_order() -> None:
    log, stops = GrowingLog(), asyncio.Event()
    async with reading(log, closing=stops.is_set) as (reader, serving):
        await log.grow(2)
        await reader.until(b"id: 2\n")
        stops.set()
        await wait_for_end(serving)
    assert reader.complete


async def test_a_log_that_is_lost_ends_the_stream_after_what_there_is() -> None:
    log = GrowingLog()
    async with reading(log) as (reader, serving):
        await log.grow(3)
        await log.break_off(ConnectionError("the database is away"))
        await wait_for_end(serving)
    assert b"id: 3\n" in reader.taken
    assert reader.complete
    assert b"database" not in reader.taken


async def test_stream_beyond_the_limit_is_503_until_one_ends() -> None:
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
