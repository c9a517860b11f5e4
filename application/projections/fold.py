"""The fold of the log into rows: the one used by the writer, by a rebuild and by time travel."""

from collections.abc import Callable, Iterable, KeysView, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, cast, get_args
from uuid import UUID

from application.projections.run_rows import RunRow, run_row
from application.projections.session_rows import SessionRow, session_row
from domain.event_types import AnyEvent
from domain.run.events import RunEvent
from domain.run.evolve import evolve_with_changes as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve_with_changes as evolve_session
from domain.values.record import Stamp, run_id_of, session_key_of

FOREVER = 2**62
"""The end position of a row that is still true."""

_RUN_EVENTS = frozenset(get_args(RunEvent))
_SESSION_EVENTS = frozenset(get_args(SessionEvent))

Row = TypeVar("Row")
RowKey = TypeVar("RowKey")
RunValue = TypeVar("RunValue")
SessionValue = TypeVar("SessionValue")


class RowSpan(NamedTuple, Generic[Row]):
    """A row and the positions between which it was true: `from_position <= p < to_position`."""

    row: Row
    from_position: int
    to_position: int


@dataclass(slots=True)
class RowChanges(Generic[RowKey, Row]):
    """New rows of one projection, and for stored open rows the position at which they ended."""

    closed: dict[RowKey, int] = field(default_factory=dict)
    opened: list[RowSpan[Row]] = field(default_factory=list)
    _last: dict[RowKey, int] = field(default_factory=dict)

    @property
    def keys(self) -> KeysView[RowKey]:
        """Of whom there are new rows."""
        return self._last.keys()

    def put(self, key: RowKey, row: Row, position: int, *, first: bool) -> None:
        """The row as it is from `position` on; the one before it ends there."""
        last = self._last.get(key)
        if last is not None:
            before = self.opened[last]
            self.opened[last] = RowSpan(before.row, before.from_position, position)
        elif not first:
            self.closed[key] = position
        self._last[key] = len(self.opened)
        self.opened.append(RowSpan(row, position, FOREVER))


class StreamFold(Generic[RunValue, SessionValue]):
    """Carries the states of runs and sessions through events, and collects what is made of each
    state: a function is given the state, the one before it and the fields that differ."""

    def __init__(
        self,
        runs: Iterable[Run],
        sessions: Iterable[Session],
        of_run: Callable[[Run, Run | None, Mapping[str, object]], RunValue],
        of_session: Callable[[Session, Session | None, Mapping[str, object]], SessionValue],
    ) -> None:
        self.runs: dict[UUID, Run] = {run.run_id: run for run in runs}
        self.sessions: dict[str, Session] = {one.session_key: one for one in sessions}
        self.run_rows: RowChanges[UUID, RunValue] = RowChanges()
        self.session_rows: RowChanges[str, SessionValue] = RowChanges()
        self._of_run = of_run
        self._of_session = of_session

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
            run, changes = evolve_run(before, cast("RunEvent", event), stamp)
            self.runs[run_id] = run
            made = self._of_run(run, before, changes)
            self.run_rows.put(run_id, made, stamp.position, first=before is None)
        elif type(event) in _SESSION_EVENTS:
            key = session_key_of(stream)
            assert key is not None
            known = self.sessions.get(key)
            session, changes = evolve_session(known, cast("SessionEvent", event), stamp)
            self.sessions[key] = session
            row = self._of_session(session, known, changes)
            self.session_rows.put(key, row, stamp.position, first=known is None)


class Fold(StreamFold[RunRow, SessionRow]):
    """The fold whose states become rows."""

    def __init__(self, runs: Iterable[Run], sessions: Iterable[Session]) -> None:
        super().__init__(
            runs, sessions, lambda run, *_: run_row(run), lambda one, *_: session_row(one)
        )
