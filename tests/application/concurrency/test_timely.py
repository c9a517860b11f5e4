"""An answer is waited for so long and no longer, however it takes being broken off."""

import asyncio

import pytest

from application.concurrency.tasks import with_timeout


async def test_an_answer_in_time_is_given() -> None:
    async def answer() -> int:
        return 42

    assert await with_timeout(answer(), 5) == 42


async def test_a_failure_in_time_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await with_timeout(fail(), 5)


async def test_one_who_is_slow_to_be_broken_off_is_not_waited_for() -> None:
    gate, over = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()
            over.set()
            raise ValueError("the connection is lost") from None

    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await with_timeout(stubborn(), 0.01)
        assert not over.is_set()
        gate.set()
        await over.wait()


async def test_when_the_asker_is_broken_off_so_is_the_question() -> None:
    began, tidied = asyncio.Event(), asyncio.Event()

    async def endless() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    asker = asyncio.create_task(with_timeout(endless(), 60))
    await began.wait()
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    assert tidied.is_set()
