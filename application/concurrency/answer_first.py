"""Delays the background work of a request until its answer is sent.

The work is on record by then, so it does not depend on the caller's presence.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ANSWER_SECONDS_MAX = 0.1
"""Maximum delay of the work by a caller that reads its answer slowly."""

_answered: ContextVar[asyncio.Event | None] = ContextVar("answered", default=None)


@contextmanager
def answering() -> Iterator[None]:
    """Make tasks created in this block wait in `answer_given` until the block is left."""
    answered = asyncio.Event()
    token = _answered.set(answered)
    try:
        yield
    finally:
        _answered.reset(token)
        answered.set()


async def answer_given() -> None:
    """Wait until the request that led to this task is answered. Return at once if there is none."""
    answered = _answered.get()
    if answered is None or answered.is_set():
        return
    timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS_MAX, answered.set)
    try:
        await answered.wait()
    finally:
        timer.cancel()
