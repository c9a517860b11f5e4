"""Waits for conditions: tests do not sleep."""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

WAIT_SECONDS_MAX = 30.0
LOOK_EVERY_SECONDS = 0.02
LOOK_EVERY_SECONDS_MAX = 0.1
WAITED_SHARE = 1 / 8
"""Share of the time waited so far before the next look: a look may be a request."""
T = TypeVar("T")


def wait_for(
    event: str, look: Callable[[], T | Literal[False] | None], *, seconds: float = WAIT_SECONDS_MAX
) -> T:
    """Return the first truthy answer of `look`. Fail if none comes in time."""
    began = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"waited {seconds} s in vain for {event}")
        pause = min(waited * WAITED_SHARE, LOOK_EVERY_SECONDS_MAX)
        threading.Event().wait(max(pause, LOOK_EVERY_SECONDS))


async def until(
    condition: Callable[[], bool | Awaitable[bool]],
    event: str = "it to come true",
    seconds: float = 10.0,
) -> None:
    """Wait for a condition on the event loop. Fail if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if await found if inspect.isawaitable(found) else found:
            return
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for: {event}"
        await asyncio.sleep(0.005)
