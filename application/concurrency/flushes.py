"""What has to be written before somebody reads it."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Flushes(Generic[K]):
    """Flushes by key: a writer that keeps a batch back adds how it is written at once."""

    def __init__(self) -> None:
        self._flushes: dict[K, Callable[[], Awaitable[None]]] = {}

    def add(self, key: K, flush: Callable[[], Awaitable[None]]) -> None:
        """From now on flush this before a read."""
        self._flushes[key] = flush

    def remove(self, key: K) -> None:
        """Nothing is kept back any more; no-op for a key that is not there."""
        self._flushes.pop(key, None)

    async def flush(self, key: K) -> None:
        """Write what is kept back under this key; no-op when nothing is."""
        flush = self._flushes.get(key)
        if flush is not None:
            await flush()
