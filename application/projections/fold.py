"""The fold of the log into rows: the one used by the writer, by a rebuild and by time travel."""

from collections.abc import Callable, Iterable, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from application.projections.catalog import PROJECTIONS
from application.projections.projection import Projection
from domain.event_types import AnyEvent
from domain.run.state import Run
from domain.session.state import Session
from domain.states import STATES_MAX, MissingStates, Occurrence, State, States
from domain.values.record import Stamp

FOREVER = 2**62
"""The end position of a row that is still true."""

STATE_VERSIONS_MAX = 32
"""A past state is folded from at most about so many events."""

AnyRow = TypeVar("AnyRow")
RowKey = TypeVar("RowKey")


class RowSpan(NamedTuple, Generic[AnyRow]):
    """A row and the positions between which it was true: `from_position <= p < to_position`; and
    whether it is stored with its state."""

    row: AnyRow
    from_position: int
    to_position: int
    has_state: bool = True


@dataclass(slots=True)
class RowChanges(Generic[RowKey, AnyRow]):
    """New rows of one projection, and for stored open rows the position at which they ended; `kept`
    are those of them that keep their state."""

    closed: dict[RowKey, int] = field(default_factory=dict)
    kept: set[RowKey] = field(default_factory=set)
    opened: list[RowSpan[AnyRow]] = field(default_factory=list)
    _last: dict[RowKey, int] = field(default_factory=dict)

    @property
    def keys(self) -> KeysView[RowKey]:
        """Of whom there are new rows."""
        return self._last.keys()

    def put(self, key: RowKey, row: AnyRow, position: int, *, before: int, version: int) -> None:
        """The row as it is from `position` on, of this version; the one before it, of the version
        `before` (0 if there is none), ends there.

        A row that ends keeps its state if the next one begins another `STATE_VERSIONS_MAX`
        versions: any other past state is folded from that and the events behind it.
        """
        keeps = before // STATE_VERSIONS_MAX < version // STATE_VERSIONS_MAX
        opened = self.opened
        place = len(opened)
        last = self._last.setdefault(key, place)
        if last != place:
            ended = opened[last]
            opened[last] = RowSpan(ended.row, ended.from_position, position, keeps)
            self._last[key] = place
        elif before:
            self.closed[key] = position
            if keeps:
                self.kept.add(key)
        opened.append(RowSpan(row, position, FOREVER))


class StateSource(Protocol):
    """Where states are found that are not in memory."""

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """The states of these runs and sessions as of position `at`, the last one of a transaction:
        those that exist."""
        ...


async def load_missing(
    states: States, page: Iterable[Occurrence], source: StateSource, after: int
) -> None:
    """Have in memory, as of the position `after`, the states that a page of events goes on from.

    The page has all events behind that position, in order, of the streams that are in it.
    """
    missing = states.missing((one.stream, one.stamp.version) for one in page)
    if missing.runs or missing.sessions:
        states.put(await source.load(missing, after))


RowFunction = Callable[[Any], Any]


def _plain_rows(projection: Projection[Any, Any]) -> RowFunction:
    return projection.row_of


class Fold:
    """Takes events into states, and collects the rows that runs and sessions are in each
    projection.

    A key has one row a transaction, made at its end: what it is after its last event in there.
    Nobody sees a transaction half, and each row that is not made need not be stored and ended.

    `row_of` gives for a projection the function that makes a row of a state; by default that is
    the projection's own.
    """

    def __init__(
        self,
        runs: Iterable[Run],
        sessions: Iterable[Session],
        row_of: Callable[[Projection[Any, Any]], RowFunction] = _plain_rows,
        *,
        states_max: int = STATES_MAX,
    ) -> None:
        self.states = States((*runs, *sessions), states_max=states_max)
        self.runs: Mapping[UUID, Run] = self.states.runs
        self.sessions: Mapping[str, Session] = self.states.sessions
        self._functions = [(one, row_of(one)) for one in PROJECTIONS]
        # Of each stream with events in the transaction: the position of the last one, the version
        # before the first one, and the state that they led to.
        self._changed: dict[str, tuple[int, int, State]] = {}
        self._begin_rows()

    def _begin_rows(self) -> None:
        self.rows: dict[str, RowChanges[Any, Any]] = {one.name: RowChanges() for one in PROJECTIONS}
        self._of_runs, self._of_sessions = (
            [(row_of, self.rows[one.name]) for one, row_of in self._functions if one.state is state]
            for state in (Run, Session)
        )

    def end_transaction(self) -> None:
        """What was applied since the last time was one transaction, and is whole."""
        for position, before, state in self._changed.values():
            key: Any
            if isinstance(state, Run):
                key, functions = state.run_id, self._of_runs
            else:
                key, functions = state.session_key, self._of_sessions
            for row_of, rows in functions:
                rows.put(key, row_of(state), position, before=before, version=state.version)
        self._changed.clear()

    def take_rows(self) -> dict[str, RowChanges[Any, Any]]:
        """The changes of the transactions that have ended, by the name of the projection; from now
        on they begin anew."""
        rows = self.rows
        self._begin_rows()
        return rows

    def version_of(self, stream: str) -> int:
        """The version of a run's or session's stream; 0 when nothing is on record."""
        state = self.states.of(stream)
        return state.version if state is not None else 0

    def apply(self, stream: str, event: AnyEvent, stamp: Stamp) -> None:
        """Take one event in. `CorruptHistory` when it does not fit the state."""
        before, after = self.states.take(stream, event, stamp)
        if after is not None:
            since = before.version if before is not None else 0
            known = self._changed.get(stream)
            self._changed[stream] = stamp.position, known[1] if known else since, after
