"""States that were decoded before, so that the same text is not decoded again and again.

Whoever uses one asks the database which version is on record, since which position, in which
table; the state of a stream at a version is the same for ever. The table counts because a rebuild
exchanges it to mend its rows. The memory is emptied when somebody connects anew, so that a database
that was restored meanwhile cannot be taken for the one that was known.

Only the holder of the append lock need not ask: what it has read or stored since it holds the lock
is what is on record, and so is that a stream is not there.
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
"""So many bytes of JSON, of runs and of sessions each; in memory it is some five times as much."""


STATE_BYTES = 2_000
"""Of a state whose size nobody has told."""


ABSENT_MAX = 10_000
"""So many streams are known not to be there."""


class StateMark(NamedTuple):
    """By what a state is known again: its version, and the position since which it is true."""

    version: int
    since: int


NO_MARK = StateMark(0, 0)


class Versioned(Protocol):
    """A state that knows after how many events it is true."""

    @property
    def version(self) -> int:
        """The number of events."""
        ...


class StoredState(NamedTuple):
    """What `stored` asks of a row; `state` is None for one that is known."""

    table: int
    since: int
    state: str | None


K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Versioned)
Read = Callable[[str], S]


class StateCache(Generic[K, S]):
    """The states used last, by the key of their stream."""

    def __init__(self) -> None:
        self._states: OrderedDict[K, tuple[StateMark, S]] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._size_bytes = 0
        self._certain: set[K] = set()
        self._absent: set[K] = set()
        self.table = 0

    def uncertain(self, keys: Iterable[K]) -> list[K]:
        """Return those of which the holder of the append lock has to ask."""
        return [key for key in keys if key not in self._certain and key not in self._absent]

    def certain(self, keys: Sequence[K]) -> dict[K, S]:
        """Return the states on record that the holder of the append lock need not ask for."""
        return {key: state for key, (_, state) in self.known(keys).items() if key in self._certain}

    def confirm(self, keys: Iterable[K], present: Collection[K]) -> None:
        """Take what the holder of the append lock has read or stored: of these keys, which are on
        record. One whose state is not remembered stays uncertain."""
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
        """Note that another may have written: nothing is certain."""
        self._certain.clear()
        self._absent.clear()

    def known(self, keys: Sequence[K]) -> dict[K, tuple[StateMark, S]]:
        """Those that are remembered, whatever version they are of."""
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
        """The state of a row that was asked for with `known`."""
        if row.state is None:
            return known[key][1]
        state = read(row.state)
        if row.table == self.table:
            self.store(key, state, row.since, len(row.state))
        return state

    def states(self, rows: Sequence[tuple[K, int, int, str]], read: Read[S]) -> list[S]:
        """The states of rows: key, version, position since when, and text."""
        known = self.known([row[0] for row in rows])
        return [
            known[key][1] if key in known and known[key][0] == (version, since) else read(state)
            for key, version, since, state in rows
        ]

    def store(self, key: K, state: S, since: int, size_bytes: int = STATE_BYTES) -> None:
        """Remember a state that is committed, unless a newer one is known. Those that nobody has
        used for longest make room; one that is larger than all of it is not kept."""
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
        """The rows stand in this table now, by its number; what is known of another is void."""
        if table != self.table:
            self.forget()
            self.table = table

    def forget(self) -> None:
        """Remember nothing."""
        self._states.clear()
        self._sizes.clear()
        self._size_bytes = 0
        self.doubt()


@dataclass(frozen=True, slots=True)
class StateCaches:
    """The states of one log, and where some of its transactions end."""

    runs: StateCache[UUID, Run] = field(default_factory=StateCache)
    sessions: StateCache[str, Session] = field(default_factory=StateCache)
    moments: Moments = field(default_factory=Moments)
    past_runs: PastRuns = field(default_factory=PastRuns)

    @property
    def ends(self) -> CommitEnds:
        """Positions that are known to be ends."""
        return self.moments.ends

    def forget(self) -> None:
        """Remember nothing."""
        self.runs.forget()
        self.sessions.forget()
        self.moments.forget()
        self.past_runs.forget()


def marks_of(
    keys: Sequence[K], known: Mapping[K, tuple[StateMark, S]]
) -> tuple[list[int], list[int]]:
    """For each key the version and the position that are remembered; 0 when none is."""
    marks = [known[key][0] if key in known else NO_MARK for key in keys]
    return [mark.version for mark in marks], [mark.since for mark in marks]


def stored_state_columns(table: str) -> str:
    """Expressions of SQL, the columns of `StoredState`: the state is not sent when it is known
    already.

    Beside the table stands `t` with the columns known and since; a parameter of the statement, the
    first in here, is the number of the table that is remembered."""
    return (
        f"{table}.tableoid::bigint, from_position, CASE WHEN version = known"
        f" AND from_position = since AND {table}.tableoid::bigint = %b::bigint"
        " THEN NULL ELSE state END"
    )
