"""Where a search finds the states that it folds events onto, and how it names events."""

from collections.abc import Collection, Iterable

from application.ports.registry import Registry
from domain.states import MissingStates, State


class RegistryStates:
    """Implements `StateSource` by the registry, which tells of any position."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """The states of these runs and sessions."""
        (found,) = await self._registry.states(missing.runs, missing.sessions, at=[at])
        return (*found.runs.values(), *found.sessions.values())


def type_names(types: Collection[type]) -> tuple[str, ...]:
    """The names by which the log knows events."""
    return tuple(sorted(one.__name__ for one in types))
