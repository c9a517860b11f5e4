"""Cancellation of tasks, and timeouts that do not depend on their cooperation."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

AGAIN_SECONDS = 0.2


async def cancel_all(tasks: Iterable["asyncio.Future[Any]"]) -> None:
    """Cancel tasks repeatedly until all have ended. Their results are ignored.

    Once is not enough: a connection pool that hands out a connection at the moment of a
    cancellation can swallow it.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)


# Graceful shutdown.


async def wait_or_cancel(under_way: Iterable["asyncio.Task[Any]"], seconds: float) -> None:
    """Wait up to `seconds` for the tasks to end, then cancel the rest."""
    tasks = set(under_way)
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=seconds)
    await cancel_all(late)
    await asyncio.gather(*late, return_exceptions=True)


# Timeouts.


T = TypeVar("T")
_abandoned: set["asyncio.Task[Any]"] = set()


async def with_timeout(question: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return the result of a coroutine, or raise TimeoutError after `seconds`.

    Unlike `asyncio.timeout`, this does not wait for the cancellation, which can take long on a
    silent database connection.
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
    raise TimeoutError(f"no response within {seconds} seconds")


def _discard_task(task: "asyncio.Task[Any]") -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
