"""Waits for conditions: tests do not sleep."""

import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar

WAIT_SECONDS_MAX = 30.0
LOOK_EVERY_SECONDS = 0.02
LOOK_EVERY_SECONDS_MAX = 0.1
WAITED_SHARE = 1 / 8
"""The longer a wait has taken, the rarer its looks: a look may be a request."""
T = TypeVar("T")


def wait_for(
    what: str, look: Callable[[], T | Literal[False] | None], *, seconds: float = WAIT_SECONDS_MAX
) -> T:
    """Return the first truthy answer of `look`. Fail if none comes in time."""
    began = time.monotonic()
    while True:
        found = look()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        pause = min(waited * WAITED_SHARE, LOOK_EVERY_SECONDS_MAX)
        threading.Event().wait(max(pause, LOOK_EVERY_SECONDS))
