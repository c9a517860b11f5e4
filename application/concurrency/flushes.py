"""Flush functions of buffered writers."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Flushes(Generic[K]):
    """Flush functions by key. Each buffering writer registers one, which readers call first."""

    def __init__(self) -> None:
        self._flushes: dict[K, Callable[[], Awaitable[None]]] = {}

    def add(self, key: K, flush: Callable[[], Awaitable[None]]) -> None:
        """Register the function to call before a read."""
        self._flushes[key] = flush

    def remove(self, key: K) -> None:
        """Unregister a key, whose buffer is empty for good. No-op for an unknown key."""
        self._flushes.pop(key, None)

    async def flush(self, key: K) -> None:
        """Flush the buffer of a key; no-op if there is none."""
        flush = self._flushes.get(key)
        if flush is not None:
            await flush()
