"""Steps that differ between the two clients by more than `await`: sleeping, and building models.

Names with the prefix `async_` are for the asynchronous client. The blocking client is generated
from it without that prefix.
"""

import time

from spawnlog.core.answer import is_prepared, prepare

__all__ = ["async_prepare", "async_sleep", "prepare", "sleep"]


async def async_sleep(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_prepare(names: tuple[str, ...]) -> None:
    """Build the models of an answer in a thread, so that the event loop is not blocked."""
    import asyncio

    if not is_prepared(names):
        await asyncio.to_thread(prepare, names)
