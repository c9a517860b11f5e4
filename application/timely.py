"""Answers in time, from those who may not answer at all."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

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
