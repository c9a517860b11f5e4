"""Retries while the log is unavailable."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from application.log.event_log import LogUnavailableError

PAUSE_SECONDS = 0.5
T = TypeVar("T")


async def retry_while_unavailable(
    ask: Callable[[], Awaitable[T]], *, given_up: Callable[[], bool]
) -> T:
    """Call `ask` until the log is available, and return its result.

    Raises:
        LogUnavailableError: If the log is unavailable and `given_up` returns True.
    """
    while True:
        try:
            return await ask()
        except LogUnavailableError:
            if given_up():
                raise
            await asyncio.sleep(PAUSE_SECONDS)
