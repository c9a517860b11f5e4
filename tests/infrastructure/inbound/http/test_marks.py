"""What is told of a log is never behind what was told before, whichever server is asked."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from application.log.event_log import LogUnavailable
from infrastructure.inbound.http.middleware.positions import POSITION_HEADER, PositionHeaders
from tests.support.builders.submissions import key, observing
from tests.support.servers.running_log import RunningLog, running_on

NOTHING_HERE = 404
NOT_READY = 503


def marks_of(server: RunningLog) -> PositionHeaders:
    """As a server marks what neither read nor decided."""
    return PositionHeaders(str(server.log.log_id), server.log.head, lambda: server.tail.position)


async def told(
    marks: PositionHeaders, status: int, given: Sequence[tuple[bytes, bytes]] = ()
) -> int | None:
    position = dict(await marks.with_position(status, given)).get(POSITION_HEADER)
    return int(position) if position is not None else None


async def test_an_error_of_one_server_is_not_behind_what_another_has_told(
    running: RunningLog,
) -> None:
    async with running_on(running.url) as other:
        # It hears nothing of the log any more, as one that is busy does for a moment.
        await other.tail.close()
        appended = await running.log.submit(observing(key("one")))
        assert other.tail.position < appended.position
        assert await told(marks_of(running), NOTHING_HERE) == appended.position
        assert await told(marks_of(other), NOTHING_HERE) == appended.position


async def test_what_an_answer_says_itself_is_left_to_it() -> None:
    marks = PositionHeaders("a-log", away, lambda: 9)
    assert await told(marks, NOTHING_HERE, [(POSITION_HEADER, b"3")]) == 3


async def test_while_the_log_is_away_a_server_that_is_not_ready_names_what_it_knows() -> None:
    seen = 3
    marks = PositionHeaders("a-log", away, lambda: seen)
    assert await told(marks, NOT_READY) == 3
    await told(marks, 200, [(POSITION_HEADER, b"5")])
    assert await told(marks, NOT_READY) == 5
    seen = 6
    assert await told(marks, NOT_READY) == 6


async def test_while_the_log_is_away_no_other_answer_names_a_position() -> None:
    for head in (away, silent):
        assert await told(PositionHeaders("a-log", head, lambda: 3), NOTHING_HERE) is None


async def test_answer_tells_the_clock_of_the_log_also_while_it_is_away() -> None:
    instant = datetime(2026, 3, 1, 10, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=1)))
    marks = PositionHeaders("a-log", away, lambda: 3, now=lambda: instant)
    for status in (200, NOTHING_HERE, NOT_READY):
        headers = dict(await marks.with_position(status, []))
        assert headers[b"spawnlog-clock"] == b"2026-03-01T09:00:00.250000Z"


async def away() -> int:
    raise LogUnavailable("the database is away")


async def silent() -> int:
    never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    return await never


async def test_an_answer_is_not_lost_for_want_of_its_mark() -> None:
    assert await told(PositionHeaders("a-log", broken, lambda: 3), 200) is None


async def broken() -> int:
    raise RuntimeError("nobody expected this")
