"""Source of the states that a search folds events onto, and the names of events."""

from collections.abc import Collection, Iterable

from application.ports.registry import Registry
from domain.states import MissingStates, State


class RegistryStates:
    """Implements `StateSource` by the registry, which has states as of any position."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """Return the states of these runs and sessions."""
        (found,) = await self._registry.states(missing.runs, missing.sessions, at=[at])
        return (*found.runs.values(), *found.sessions.values())


def type_names(types: Collection[type]) -> tuple[str, ...]:
    """Return the names of events in the log."""
    return tuple(sorted(event_type.__name__ for event_type in types))
