"""Gathering what comes one by one into batches, without letting anything wait long."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class ItemBatch(NamedTuple, Generic[T]):
    """Items in their order; `is_last` when the source is over with them."""

    items: list[T]
    is_last: bool


async def iterate_batches(
    source: AsyncIterator[T],
    *,
    size: int,
    seconds: float,
    weigh: Callable[[T], int],
    weight: int,
) -> AsyncIterator[ItemBatch[T]]:
    """Batches of at most `size` items, given out once they weigh `weight`; none is held back
    longer than `seconds` after its first item, and what came before the source failed is not
    lost with it."""
    batch: list[T] = []
    weighed = 0
    deadline = 0.0
    pending: asyncio.Future[T] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(source))
            timeout = max(0.0, deadline - time.monotonic()) if batch else None
            done, _ = await asyncio.wait({pending}, timeout=timeout)
            if done:
                try:
                    item = pending.result()
                except StopAsyncIteration:
                    pending = None
                    break
                except Exception:
                    if batch:
                        yield ItemBatch(batch, is_last=False)
                    raise
                pending = None
                if not batch:
                    deadline = time.monotonic() + seconds
                batch.append(item)
                weighed += weigh(item)
            full = len(batch) >= size or weighed >= weight
            if full or (batch and time.monotonic() >= deadline):
                yield ItemBatch(batch, is_last=False)
                batch, weighed = [], 0
        if batch:
            yield ItemBatch(batch, is_last=True)
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending})
