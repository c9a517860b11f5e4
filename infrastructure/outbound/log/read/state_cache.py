"""Cache of decoded states, so that the same JSON is not decoded repeatedly.

A reader asks the database for the recorded version, the position since which it holds, and the
table. The state of a stream at a version never changes. The table is part of the key because a
rebuild replaces it to repair its rows. The cache is emptied on a new connection, so that a database
restored in the meantime is not mistaken for the previous one.

Only the holder of the append lock may skip the question: whatever it has read or stored while
holding the lock is current, including the absence of a stream.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from domain.run.state import Run
from domain.session.state import Session
from infrastructure.outbound.log.read.commit_ends import CommitEnds
from infrastructure.outbound.log.read.moments import Moments
from infrastructure.outbound.log.read.past_runs import PastRuns

STATES_BYTES_MAX = 3 * 1024 * 1024 // 2
"""Limit in bytes of JSON, for runs and sessions each; the memory used is about five times as
much."""


STATE_BYTES = 2_000
"""Assumed size of a state whose size is unknown."""


ABSENT_MAX = 10_000
"""Maximum number of streams remembered as absent."""


class StateMark(NamedTuple):
    """Identity of a cached state: its version, and the position since which it holds."""

    version: int
    since: int


NO_MARK = StateMark(0, 0)


class Versioned(Protocol):
    """State with a version."""

    @property
    def version(self) -> int:
        """Return the number of events that led to this state."""
        ...


class StoredState(NamedTuple):
    """Columns of a row as `stored_state_columns` selects them; `state` is None if it is cached."""

    table: int
    since: int
    state: str | None


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Versioned)
Read = Callable[[str], S]


class StateCache(Generic[K, S]):
    """LRU cache of states by the key of their stream."""

    def __init__(self) -> None:
        self._states: OrderedDict[K, tuple[StateMark, S]] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._size_bytes = 0
        self._certain: set[K] = set()
        self._absent: set[K] = set()
        self.table = 0

    def uncertain(self, keys: Iterable[K]) -> list[K]:
        """Return the keys that the holder of the append lock must query."""
        return [key for key in keys if key not in self._certain and key not in self._absent]

    def certain(self, keys: Sequence[K]) -> dict[K, S]:
        """Return the states that the holder of the append lock knows to be current."""
        return {key: state for key, (_, state) in self.known(keys).items() if key in self._certain}

    def confirm(self, keys: Iterable[K], present: Collection[K]) -> None:
        """Note a read or store by the holder of the append lock: `present` are the keys that are
        recorded, the other `keys` are absent. A present key whose state is not cached stays
        uncertain."""
        for key in keys:
            if key not in present:
                self._absent.add(key)
            else:
                self._absent.discard(key)
                if key in self._states:
                    self._certain.add(key)
        if len(self._absent) > ABSENT_MAX:
            self._absent.clear()

    def doubt(self) -> None:
        """Note that another process may have written: nothing is certain."""
        self._certain.clear()
        self._absent.clear()

    def known(self, keys: Sequence[K]) -> dict[K, tuple[StateMark, S]]:
        """Return the cached states, of whatever version."""
        found: dict[K, tuple[StateMark, S]] = {}
        for key in keys:
            remembered = self._states.get(key)
            if remembered is not None:
                self._states.move_to_end(key)
                found[key] = remembered
        return found

    def found(
        self, key: K, row: StoredState, known: Mapping[K, tuple[StateMark, S]], read: Read[S]
    ) -> S:
        """Return the state of a row that was queried with the marks of `known`."""
        if row.state is None:
            return known[key][1]
        state = read(row.state)
        if row.table == self.table:
            self.store(key, state, row.since, len(row.state))
        return state

    def states(self, rows: Sequence[tuple[K, int, int, str]], read: Read[S]) -> list[S]:
        """Return the states of rows of key, version, first position and JSON, from the cache where
        it has the same version."""
        known = self.known([row[0] for row in rows])
        return [
            known[key][1] if key in known and known[key][0] == (version, since) else read(state)
            for key, version, since, state in rows
        ]

    def store(self, key: K, state: S, since: int, size_bytes: int = STATE_BYTES) -> None:
        """Cache a committed state, unless a newer one is cached.

        The least recently used states are evicted first. A state larger than the whole cache is not
        kept.
        """
        before = self._states.get(key)
        if before is None or before[0].version < state.version:
            self._states[key] = StateMark(state.version, since), state
            self._size_bytes += size_bytes - self._sizes.get(key, 0)
            self._sizes[key] = size_bytes
        self._states.move_to_end(key)
        while self._size_bytes > STATES_BYTES_MAX:
            oldest, _ = self._states.popitem(last=False)
            self._certain.discard(oldest)
            self._size_bytes -= self._sizes.pop(oldest)

    def of(self, table: int) -> None:
        """Note the oid of the table that holds the rows. If it has changed, empty the cache."""
        if table != self.table:
            self.forget()
            self.table = table

    def forget(self) -> None:
        self._states.clear()
        self._sizes.clear()
        self._size_bytes = 0
        self.doubt()


@dataclass(frozen=True, slots=True)
class StateCaches:
    """Caches of one log's states, and of some ends of its transactions."""

    runs: StateCache[UUID, Run] = field(default_factory=StateCache)
    sessions: StateCache[str, Session] = field(default_factory=StateCache)
    moments: Moments = field(default_factory=Moments)
    past_runs: PastRuns = field(default_factory=PastRuns)

    @property
    def ends(self) -> CommitEnds:
        """Return the cache of transaction-boundary positions."""
        return self.moments.ends

    def forget(self) -> None:
        self.runs.forget()
        self.sessions.forget()
        self.moments.forget()
        self.past_runs.forget()


def marks_of(
    keys: Sequence[K], known: Mapping[K, tuple[StateMark, S]]
) -> tuple[list[int], list[int]]:
    """Return, for each key, the cached version and first position; 0 if it is not cached."""
    marks = [known[key][0] if key in known else NO_MARK for key in keys]
    return [mark.version for mark in marks], [mark.since for mark in marks]


def stored_state_columns(table: str) -> str:
    """Return the SQL expressions of the columns of `StoredState`. The state is omitted if it is
    cached.

    The statement must join the table with `t`, which has the columns `known` and `since`. The first
    parameter is the oid of the cached table.
    """
    return (
        f"{table}.tableoid::bigint, from_position, CASE WHEN version = known"
        f" AND from_position = since AND {table}.tableoid::bigint = %b::bigint"
        " THEN NULL ELSE state END"
    )
