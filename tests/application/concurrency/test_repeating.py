"""Work that is done now and then ends when it is told to."""

import asyncio

from application.concurrency.periodic import PeriodicTask
from tests.support.faults.held_commits import until


async def test_it_ends_although_a_cancellation_got_lost_in_its_work() -> None:
    """As in a pool that gives out a connection in the moment of the cancellation."""
    begun, lost = 0, 0

    async def work() -> None:
        nonlocal begun, lost
        begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if lost:
                raise
            lost += 1

    repeating = PeriodicTask("test", work, 0.01)
    repeating.start()

    async def has_begun() -> bool:
        return begun > 0

    await until(has_begun, "the work begins")
    closing = asyncio.create_task(repeating.close())
    done, _ = await asyncio.wait({closing}, timeout=5)
    assert done
    assert lost == 1


async def test_closing_what_never_began_does_nothing() -> None:
    async def work() -> None:
        raise AssertionError

    await PeriodicTask("test", work, 0.01).close()
