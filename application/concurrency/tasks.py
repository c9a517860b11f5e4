"""Ending tasks that may not hear of it at once."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_SECONDS = 0.2


async def cancel_all(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    """Cancel them until all have ended; what came of them is not asked.

    A pool that gives out a connection in the very moment of a cancellation forgets that one.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
