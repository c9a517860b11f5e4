"""Giving work that is under way the time to end, and breaking off what takes longer."""

import asyncio
from collections.abc import Iterable
from typing import Any

from application.concurrency import tasks as cancelling


async def wait_or_cancel(under_way: Iterable["asyncio.Task[Any]"], seconds: float) -> None:
    """Return when all of it has ended; what has not after so many seconds is cancelled."""
    tasks = set(under_way)
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=seconds)
    await cancelling.cancel_all(late)
    await asyncio.gather(*late, return_exceptions=True)
