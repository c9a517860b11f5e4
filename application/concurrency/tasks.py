"""Ending tasks that may not hear of it at once."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

AGAIN_SECONDS = 0.2


async def cancel_all(tasks: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel them until all have ended; what came of them is not asked.

    A pool that gives out a connection in the very moment of a cancellation forgets that one.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)


# Giving work that is under way the time to end, and breaking off what takes longer.


async def wait_or_cancel(under_way: Iterable["asyncio.Task[Any]"], seconds: float) -> None:
    """Return when all of it has ended; what has not after so many seconds is cancelled."""
    tasks = set(under_way)
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=seconds)
    await cancel_all(late)
    await asyncio.gather(*late, return_exceptions=True)


# Answers in time, from those who may not answer at all.


T = TypeVar("T")
_abandoned: set["asyncio.Task[Any]"] = set()


async def with_timeout(question: Coroutine[Any, Any, T], seconds: float) -> T:
    """The answer, or TimeoutError after so many seconds.

    A connection to a database that is silent takes its own time to be broken off; unlike
    `asyncio.timeout` this does not wait for it.
    """
    task = asyncio.create_task(question)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if task.done():
        return task.result()
    _abandoned.add(task)
    task.add_done_callback(_discard_task)
    task.cancel()
    raise TimeoutError(f"no answer within {seconds} seconds")


def _discard_task(task: "asyncio.Task[Any]") -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
