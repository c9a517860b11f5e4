"""Tasks that are awaited, cancelled and repeated, and work that starts after an answer."""

import asyncio
import time

import pytest

from application.concurrency import answer_first
from application.concurrency.answer_first import answer_given, answering
from application.concurrency.periodic import PeriodicTask
from application.concurrency.running_time import RunningTime
from application.concurrency.tasks import wait_or_cancel, with_timeout

WAIT_SECONDS = 10.0


class Endless:
    """Work that ends when it is broken off, a moment later."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.is_tidy = False

    async def work(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.is_tidy = True


async def fail() -> None:
    raise ValueError("no")


# An answer is waited for so long and no longer.


async def test_timely_answer_or_failure_is_given() -> None:
    assert await with_timeout(asyncio.sleep(0, 42), WAIT_SECONDS) == 42
    with pytest.raises(ValueError, match="no"):
        await with_timeout(fail(), WAIT_SECONDS)


async def test_slow_cancellation_is_not_waited_for() -> None:
    gate, over = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()
            over.set()
            raise ValueError("the connection is lost") from None

    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(TimeoutError):
            await with_timeout(stubborn(), 0.01)
        assert not over.is_set()
        gate.set()
        await over.wait()


async def test_cancelled_caller_cancels_its_question() -> None:
    endless = Endless()
    asker = asyncio.create_task(with_timeout(endless.work(), 60))
    await endless.began.wait()
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    assert endless.is_tidy


# Running tasks get time to end, and are cancelled after it.


async def test_task_that_ends_in_time_is_not_cancelled() -> None:
    gate = asyncio.Event()
    task, failing = asyncio.create_task(gate.wait()), asyncio.create_task(fail())
    asyncio.get_running_loop().call_soon(gate.set)
    await wait_or_cancel([task, failing], WAIT_SECONDS)
    assert task.result() is True
    assert isinstance(failing.exception(), ValueError)
    await wait_or_cancel([], WAIT_SECONDS)


async def test_task_that_takes_longer_is_cancelled_and_ended() -> None:
    endless = Endless()
    task = asyncio.create_task(endless.work())
    await wait_or_cancel([task], 0.01)
    assert task.cancelled()
    assert endless.is_tidy


# Work that is repeated.


async def test_periodic_task_ends_although_a_cancellation_got_lost() -> None:
    """A pool that hands out a connection at the moment of the cancellation loses it like this."""
    began, lost = asyncio.Event(), 0

    async def work() -> None:
        nonlocal lost
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if lost:
                raise
            lost += 1

    repeating = PeriodicTask("test", work, 0.01)
    repeating.start()
    await asyncio.wait_for(began.wait(), WAIT_SECONDS)
    await asyncio.wait_for(repeating.close(), WAIT_SECONDS)
    assert lost == 1


async def test_periodic_task_that_never_began_is_closed() -> None:
    await PeriodicTask("test", fail, 0.01).close()


def test_suspension_counts_as_one_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    running = RunningTime(6.0)
    for _ in range(5):
        now[0] += running.look_seconds
        assert not running.look()
    assert running.now() == 5.0
    now[0] += 3600
    assert running.look()
    assert running.now() == 6.0
    now[0] += 1.5
    assert not running.look()
    assert running.seconds == 7.5


# Work that a request has led to begins once its caller has the answer.


async def test_task_waits_for_the_answer_of_its_request() -> None:
    order: list[str] = []

    async def work() -> None:
        await answer_given()
        order.append("work")

    with answering():
        task = asyncio.create_task(work())
        for _ in range(5):
            await asyncio.sleep(0)
        order.append("answer")
    await task
    assert order == ["answer", "work"]


async def test_task_begins_when_its_request_fails() -> None:
    tasks: list[asyncio.Task[None]] = []

    async def request() -> None:
        with answering():
            tasks.append(asyncio.create_task(answer_given()))
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await request()
    await asyncio.wait_for(tasks[0], WAIT_SECONDS)


async def test_slow_answer_does_not_hold_up_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_first, "ANSWER_SECONDS_MAX", 0.01)
    with answering():
        await asyncio.wait_for(asyncio.create_task(answer_given()), WAIT_SECONDS)


async def test_task_does_not_wait_without_request_or_after_its_answer() -> None:
    await asyncio.wait_for(answer_given(), WAIT_SECONDS)
    with answering():
        task = asyncio.create_task(answer_given())
    await asyncio.wait_for(task, WAIT_SECONDS)
