"""Work under way is given time to end, and is broken off after it."""

import asyncio

from application.concurrency.tasks import wait_or_cancel


async def test_what_ends_in_time_is_not_broken_off() -> None:
    gate = asyncio.Event()
    task = asyncio.create_task(gate.wait())
    asyncio.get_running_loop().call_soon(gate.set)
    await wait_or_cancel([task], 5)
    assert task.result() is True


async def test_what_takes_longer_is_broken_off_and_has_ended_by_then() -> None:
    tidied = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append("up")

    task = asyncio.create_task(endless())
    await wait_or_cancel([task], 0.01)
    assert task.cancelled()
    assert tidied == ["up"]


async def test_a_failure_of_the_work_is_not_that_of_who_waits() -> None:
    async def failing() -> None:
        raise ValueError("no")

    task = asyncio.create_task(failing())
    await wait_or_cancel([task], 5)
    assert isinstance(task.exception(), ValueError)


async def test_there_may_be_nothing_to_wait_for() -> None:
    await wait_or_cancel([], 5)
