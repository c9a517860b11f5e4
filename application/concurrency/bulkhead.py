"""Bulkheads: limits on concurrent calls per destination, so that a slow one blocks only itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from domain.configuration.hooks import AnyHook
from domain.configuration.webhooks import WEBHOOKS_MAX

AT_ONCE_MAX = 50
"""Maximum number of calls in progress per compartment."""


CALLS_MAX = 1_000
"""Maximum number of calls in progress or waiting per compartment."""


COMPARTMENTS_MAX = 5 + WEBHOOKS_MAX
"""Maximum number of compartments: files, hooks and webhooks."""


_UNDO_HOOKS: dict[str, AnyHook] = {
    "thread_binding": "subagentEnded",
    "context_engine": "prepareSubagentSpawn",
}


class BulkheadFullError(Exception):
    """Too many calls are waiting; try again later."""


class Bulkhead:
    """The bulkheads of a process, by compartment."""

    def __init__(self, *, at_once_max: int = AT_ONCE_MAX, calls_max: int = CALLS_MAX) -> None:
        self._at_once_max = at_once_max
        self._calls_max = calls_max
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._calls: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Wait for a free place in the compartment `name`, and hold it in the block.

        Raises:
            BulkheadFullError: If too many calls are waiting for it.
        """
        if self._calls[name] >= self._calls_max:
            raise BulkheadFullError(f"{self._calls_max} calls already wait for {name}")
        room = self._rooms.setdefault(name, asyncio.Semaphore(self._at_once_max))
        self._calls[name] += 1
        try:
            async with room:
                yield
        finally:
            self._calls[name] -= 1


def undo_compartment(step: str) -> str:
    """Return the compartment in which a step is undone."""
    return _UNDO_HOOKS.get(step, "files")
