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
        """The row as it is from `position` on; the one before it ends there."""
        last = self._last.get(key)
        if last is not None:
            before = self.opened[last]
            self.opened[last] = RowSpan(before.row, before.from_position, position)
        elif not first:
            self.closed[key] = position
        self._last[key] = len(self.opened)
        self.opened.append(RowSpan(row, position, FOREVER))


RowFunction = Callable[[Any], Any]


def _plain_rows(projection: Projection[Any, Any]) -> RowFunction:
    return projection.row_of


class Fold:
    """Carries the states of runs and sessions through events, and collects the rows that they are
    in each projection.

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
        self._begin_rows()

    def _begin_rows(self) -> None:
        self.rows: dict[str, RowChanges[Any, Any]] = {one.name: RowChanges() for one in PROJECTIONS}
        self._of_runs, self._of_sessions = (
            [(row_of, self.rows[one.name]) for one, row_of in self._functions if one.state is state]
            for state in (Run, Session)
        )

    def take_rows(self) -> dict[str, RowChanges[Any, Any]]:
        """The changes so far, by the name of the projection; from now on they begin anew."""
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
            for row_of, rows in self._of_runs:
                rows.put(run_id, row_of(run), stamp.position, first=before is None)
        elif type(event) in _SESSION_EVENTS:
            key = session_key_of(stream)
            assert key is not None
            known = self.sessions.get(key)
            session = evolve_session(known, cast("SessionEvent", event), stamp)
            self.sessions[key] = session
            for row_of, rows in self._of_sessions:
                rows.put(key, row_of(session), stamp.position, first=known is None)
