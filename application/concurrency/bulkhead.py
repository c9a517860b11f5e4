"""Room for those who wait for somebody else: whoever hangs is in the way of nobody but its own."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from domain.configuration.hooks import AnyHook
from domain.run.facts import StepName

AT_ONCE_MAX = 50
"""So many are in one room at a time."""


WANTED_MAX = 1_000
"""So many are in one room, or wait for it."""


COMPARTMENTS_MAX = 5
"""Files, and the hooks that are told or asked to undo something."""


_ASKED_TO_UNDO: dict[StepName, AnyHook] = {
    "thread_binding": "subagentEnded",
    "context_engine": "prepareSubagentSpawn",
}


class BulkheadFull(Exception):
    """Too many wait already: it is for later."""


class Bulkhead:
    """One a process."""

    def __init__(self, *, at_once_max: int = AT_ONCE_MAX, wanted_max: int = WANTED_MAX) -> None:
        self._at_once_max = at_once_max
        self._wanted_max = wanted_max
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._wanted: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait until there is room. Raises `BulkheadFull` when too many do."""
        if self._wanted[name] >= self._wanted_max:
            raise BulkheadFull(f"{self._wanted_max} wait for {name} already")
        room = self._rooms.setdefault(name, asyncio.Semaphore(self._at_once_max))
        self._wanted[name] += 1
        try:
            async with room:
                yield
        finally:
            self._wanted[name] -= 1


def undo_compartment(step: StepName) -> str:
    """The room in which a step is undone."""
    return _ASKED_TO_UNDO.get(step, "files")
