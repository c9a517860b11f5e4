"""A caller gets its answer before the work begins that its request has led to.

That work is on record by then: it does not depend on whether the caller is still there.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ANSWER_SECONDS_MAX = 0.1
"""A caller that takes its answer slowly holds up the work for so long at most."""

_answered: ContextVar[asyncio.Event | None] = ContextVar("answered", default=None)


@contextmanager
def answering() -> Iterator[None]:
    """Let tasks that are created in this block wait in `answer_given` until the block is left."""
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
