"""States that were decoded before, so that the same text is not decoded again and again.

It never answers by itself: whoever uses one asks the database which version is on record, and the
state of a stream at a version is the same for ever. It is emptied when the writer connects anew,
so that a database that was restored meanwhile cannot be taken for the one that was known.
"""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from domain.run.state import Run
from domain.session.state import Session

STATES_MAX = 4_000


class Versioned(Protocol):
    """A state that knows after how many events it is true."""

    @property
    def version(self) -> int:
        """The number of events."""
        ...


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Versioned)


class StateMemory(Generic[K, S]):
    """The states used last, by the key of their stream."""

    def __init__(self) -> None:
        self._states: OrderedDict[K, S] = OrderedDict()

    def known(self, keys: Sequence[K]) -> dict[K, S]:
        """Those that are remembered, whatever version they are of."""
        found: dict[K, S] = {}
        for key in keys:
            state = self._states.get(key)
            if state is not None:
                self._states.move_to_end(key)
                found[key] = state
        return found

    def keep(self, key: K, state: S) -> None:
        """Remember a state that is committed, unless a newer one is known."""
        before = self._states.get(key)
        if before is None or before.version < state.version:
            self._states[key] = state
        self._states.move_to_end(key)
        while len(self._states) > STATES_MAX:
            self._states.popitem(last=False)

    def forget(self) -> None:
        """Remember nothing."""
        self._states.clear()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The states of one log."""

    runs: StateMemory[UUID, Run] = field(default_factory=StateMemory)
    sessions: StateMemory[str, Session] = field(default_factory=StateMemory)

    def forget(self) -> None:
        """Remember nothing."""
        self.runs.forget()
        self.sessions.forget()


def versions_of(keys: Sequence[K], known: Mapping[K, S]) -> list[int]:
    """For each key the version that is remembered; 0 when none is."""
    return [state.version if (state := known.get(key)) is not None else 0 for key in keys]
