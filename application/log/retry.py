"""Asking the log until it answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from application.log.event_log import LogUnavailable

PAUSE_SECONDS = 0.5
T = TypeVar("T")


async def retry_while_unavailable(
    ask: Callable[[], Awaitable[T]], *, given_up: Callable[[], bool]
) -> T:
    """The answer, once there is one. While the log is away the question is asked again and again;
    `LogUnavailable` is raised only when it was given up meanwhile."""
    while True:
        try:
            return await ask()
        except LogUnavailable:
            if given_up():
                raise
            await asyncio.sleep(PAUSE_SECONDS)
