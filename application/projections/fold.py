"""The fold of the log into rows: the one used by the writer, by a rebuild and by time travel."""

from collections.abc import Callable, Iterable, KeysView
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args
from uuid import UUID

from application.projections.catalog import PROJECTIONS
from application.projections.projection import Projection
from domain.event_types import AnyEvent
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.values.record import Stamp, run_id_of, session_key_of

FOREVER = 2**62
"""The end position of a row that is still true."""

_RUN_EVENTS = frozenset(get_args(RunEvent))
_SESSION_EVENTS = frozenset(get_args(SessionEvent))

AnyRow = TypeVar("AnyRow")
RowKey = TypeVar("RowKey")


class RowSpan(NamedTuple, Generic[AnyRow]):
    """A row and the positions between which it was true: `from_position <= p < to_position`."""

    row: AnyRow
    from_position: int
    to_position: int


@dataclass(slots=True)
class RowChanges(Generic[RowKey, AnyRow]):
    """New rows of one projection, and for stored open rows the position at which they ended."""

    closed: dict[RowKey, int] = field(default_factory=dict)
    opened: list[RowSpan[AnyRow]] = field(default_factory=list)
    _last: dict[RowKey, int] = field(default_factory=dict)

    @property
    def keys(self) -> KeysView[RowKey]:
        """Of whom there are new rows."""
        return self._last.keys()

    def put(self, key: RowKey, row: AnyRow, position: int, *, first: bool) -> None:
        """The row as it is from `position` on; the one before it, unless this is the `first` one of
        its key, ends there."""
        last = self._last.get(key)
        if last is not None:
            before = self.opened[last]
            self.opened[last] = RowSpan(before.row, before.from_position, position)
        elif not first:
            self.closed[key] = position
        self._last[key] = len(self.opened)
        self.opened.append(RowSpan(row, position, FOREVER))


class _Change(NamedTuple):
    """That a key has events in the transaction: the last one's position, and whether one of them is
    the first of all."""

    position: int
    first: bool


RowFunction = Callable[[Any], Any]


def _plain_rows(projection: Projection[Any, Any]) -> RowFunction:
    return projection.row_of


class Fold:
    """Carries the states of runs and sessions through events, and collects the rows that they are
    in each projection.

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
    ) -> None:
        self.runs: dict[UUID, Run] = {run.run_id: run for run in runs}
        self.sessions: dict[str, Session] = {one.session_key: one for one in sessions}
        self._functions = [(one, row_of(one)) for one in PROJECTIONS]
        self._changed_runs: dict[UUID, _Change] = {}
        self._changed_sessions: dict[str, _Change] = {}
        self._begin_rows()

    def _begin_rows(self) -> None:
        self.rows: dict[str, RowChanges[Any, Any]] = {one.name: RowChanges() for one in PROJECTIONS}
        self._of_runs, self._of_sessions = (
            [(row_of, self.rows[one.name]) for one, row_of in self._functions if one.state is state]
            for state in (Run, Session)
        )

    def end_transaction(self) -> None:
        """What was applied since the last time was one transaction, and is whole."""
        for run_id, change in self._changed_runs.items():
            for row_of, rows in self._of_runs:
                rows.put(run_id, row_of(self.runs[run_id]), change.position, first=change.first)
        for key, change in self._changed_sessions.items():
            for row_of, rows in self._of_sessions:
                rows.put(key, row_of(self.sessions[key]), change.position, first=change.first)
        self._changed_runs.clear()
        self._changed_sessions.clear()

    def take_rows(self) -> dict[str, RowChanges[Any, Any]]:
        """The changes of the transactions that have ended, by the name of the projection; from now
        on they begin anew."""
        rows = self.rows
        self._begin_rows()
        return rows

    def version_of(self, stream: str) -> int:
        """The version of a run's or session's stream; 0 when nothing is on record."""
        run_id = run_id_of(stream)
        state = (
            self.runs.get(run_id)
            if run_id is not None
            else self.sessions.get(session_key_of(stream) or "")
        )
        return state.version if state is not None else 0

    def apply(self, stream: str, event: AnyEvent, stamp: Stamp) -> None:
        """Take one event in. `CorruptHistory` when it does not fit the state."""
        # By the very type: to ask whether it is an instance of one of so many takes far longer.
        if type(event) in _RUN_EVENTS:
            run_id = run_id_of(stream)
            assert run_id is not None
            before = self.runs.get(run_id)
            run = evolve_run(before, cast("RunEvent", event), stamp)
            self.runs[run_id] = run
            changed = self._changed_runs.get(run_id)
            first = before is None or (changed is not None and changed.first)
            self._changed_runs[run_id] = _Change(stamp.position, first)
        elif type(event) in _SESSION_EVENTS:
            key = session_key_of(stream)
            assert key is not None
            known = self.sessions.get(key)
            session = evolve_session(known, cast("SessionEvent", event), stamp)
            self.sessions[key] = session
            altered = self._changed_sessions.get(key)
            first = known is None or (altered is not None and altered.first)
            self._changed_sessions[key] = _Change(stamp.position, first)
