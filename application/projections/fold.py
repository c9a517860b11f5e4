"""The fold from events to rows, shared by the writer, rebuilds and time travel."""

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
"""End position of a current row."""

STATE_VERSIONS_MAX = 32
"""A past state is folded from about this many events at most."""

AnyRow = TypeVar("AnyRow")
RowKey = TypeVar("RowKey")


class RowSpan(NamedTuple, Generic[AnyRow]):
    """A row with the positions at which it was true: `from_position <= p < to_position`.

    `has_state` is True if its state is stored.
    """

    row: AnyRow
    from_position: int
    to_position: int
    has_state: bool = True


@dataclass(slots=True)
class RowChanges(Generic[RowKey, AnyRow]):
    """New rows of a projection, and the end positions of stored rows that they replace.

    `kept` are the replaced rows that keep their state.
    """

    closed: dict[RowKey, int] = field(default_factory=dict)
    kept: set[RowKey] = field(default_factory=set)
    opened: list[RowSpan[AnyRow]] = field(default_factory=list)
    _last: dict[RowKey, int] = field(default_factory=dict)

    @property
    def keys(self) -> KeysView[RowKey]:
        """Return the keys with new rows."""
        return self._last.keys()

    def put(self, key: RowKey, row: AnyRow, position: int, *, before: int, version: int) -> None:
        """Add the row of a key from `position` on, and end the row before it.

        A row that ends keeps its state only if the next version crosses a multiple of
        `STATE_VERSIONS_MAX`. Every other past state is folded from a kept one and the events after
        it.

        Args:
            before: Version of the row before; 0 if there is none.
            version: Version of this row.
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
    """Source of states that are not in memory."""

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """Return the states of these runs and sessions as of `at`, the last position of a
        transaction.

        States that did not exist are left out.
        """
        ...


async def load_missing(
    states: States, page: Iterable[Occurrence], source: StateSource, after: int
) -> None:
    """Load into memory, as of `after`, the states that a page of events continues from.

    The page must have all events after that position, in order, of the streams in it.
    """
    missing = states.missing((occurrence.stream, occurrence.stamp.version) for occurrence in page)
    if missing.runs or missing.sessions:
        states.put(await source.load(missing, after))


RowFunction = Callable[[Any], Any]


def _plain_rows(projection: Projection[Any, Any]) -> RowFunction:
    return projection.row_of


class Fold:
    """Fold of events into states, which collects the resulting rows of each projection.

    A key gets one row per transaction, for its state after its last event there. Readers never see
    part of a transaction, and fewer rows are stored.

    Args:
        row_of: Returns the row function of a projection; by default the projection's own.
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
        self._functions = [(projection, row_of(projection)) for projection in PROJECTIONS]
        # For each stream changed in the transaction: position of its last event, version before its
        # first event, and resulting state.
        self._changed: dict[str, tuple[int, int, State]] = {}
        self._begin_rows()

    def _begin_rows(self) -> None:
        self.rows: dict[str, RowChanges[Any, Any]] = {
            projection.name: RowChanges() for projection in PROJECTIONS
        }
        self._of_runs, self._of_sessions = (
            [
                (row_of, self.rows[projection.name])
                for projection, row_of in self._functions
                if projection.state is state
            ]
            for state in (Run, Session)
        )

    def end_transaction(self) -> None:
        """Make the rows of the events applied since the last call, as one transaction."""
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
        """Return the changes of the ended transactions by projection name, and start a new
        collection."""
        rows = self.rows
        self._begin_rows()
        return rows

    def version_of(self, stream: str) -> int:
        """Return the version of a run's or session's stream; 0 if it is not on record."""
        state = self.states.of(stream)
        return state.version if state is not None else 0

    def apply(self, stream: str, event: AnyEvent, stamp: Stamp) -> None:
        """Apply an event.

        Raises:
            CorruptHistoryError: If it does not fit the state.
        """
        before, after = self.states.take(stream, event, stamp)
        if after is not None:
            since = before.version if before is not None else 0
            known = self._changed.get(stream)
            self._changed[stream] = stamp.position, known[1] if known else since, after
