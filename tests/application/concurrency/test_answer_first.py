"""Work that a request has led to begins once its caller has the answer."""

import asyncio

import pytest

from application.concurrency import answer_first
from application.concurrency.answer_first import answer_given, answering

WAIT_SECONDS = 10.0


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
