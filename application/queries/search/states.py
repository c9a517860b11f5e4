"""Where a search finds the states that it folds events onto, and how it names events."""

import asyncio
from collections.abc import Collection, Sequence
from uuid import UUID

from application.ports.registry import Registry
from domain.run.state import Run
from domain.session.state import Session


class RegistryStates:
    """Implements `StateSource` by the registry, which tells of any position."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def runs(self, run_ids: Sequence[UUID], at: int) -> Sequence[Run]:
        """The states of these runs."""
        found = await asyncio.gather(*(self._registry.run(one, at=at) for one in run_ids))
        return [one for one in found if one is not None]

    async def sessions(self, keys: Sequence[str], at: int) -> Sequence[Session]:
        """The states of these sessions."""
        found = await asyncio.gather(*(self._registry.session(one, at=at) for one in keys))
        return [one for one in found if one is not None]


def type_names(types: Collection[type]) -> tuple[str, ...]:
    """The names by which the log knows events."""
    return tuple(sorted(one.__name__ for one in types))
