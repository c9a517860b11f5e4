"""Room for those who wait for somebody else: whoever hangs is in the way of nobody but its own."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from domain.configuration.hooks import AnyHook
from domain.configuration.webhooks import WEBHOOKS_MAX

AT_ONCE_MAX = 50
"""So many are in one room at a time."""


CALLS_MAX = 1_000
"""So many are in one room, or wait for it."""


COMPARTMENTS_MAX = 5 + WEBHOOKS_MAX
"""Files, the hooks that are told or asked to undo something, and the webhooks."""


_UNDO_HOOKS: dict[str, AnyHook] = {
    "thread_binding": "subagentEnded",
    "context_engine": "prepareSubagentSpawn",
}


class BulkheadFull(Exception):
    """Too many wait already: it is for later."""


class Bulkhead:
    """One a process."""

    def __init__(self, *, at_once_max: int = AT_ONCE_MAX, calls_max: int = CALLS_MAX) -> None:
        self._at_once_max = at_once_max
        self._calls_max = calls_max
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._calls: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait until there is room. Raises `BulkheadFull` when too many do."""
        if self._calls[name] >= self._calls_max:
            raise BulkheadFull(f"{self._calls_max} wait for {name} already")
        room = self._rooms.setdefault(name, asyncio.Semaphore(self._at_once_max))
        self._calls[name] += 1
        try:
            async with room:
                yield
        finally:
            self._calls[name] -= 1


def undo_compartment(step: str) -> str:
    """The room in which a step is undone."""
    return _UNDO_HOOKS.get(step, "files")
