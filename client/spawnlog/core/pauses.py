"""Where the two clients differ by more than words: sleeping, and building models.

The client that awaits has the names that begin with `async_`; the other one is written from it,
without that word.
"""

import time

from spawnlog.core.answer import is_prepared, prepare

__all__ = ["async_prepare", "async_sleep", "prepare", "sleep"]


async def async_sleep(seconds: float) -> None:
    """Wait."""
    import asyncio

    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    """Wait."""
    time.sleep(seconds)


async def async_prepare(names: tuple[str, ...]) -> None:
    """Build the models of an answer in another thread, so that the event loop continues."""
    import asyncio

    if not is_prepared(names):
        await asyncio.to_thread(prepare, names)
