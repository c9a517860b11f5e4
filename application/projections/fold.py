"""The fold of the log into rows: the one used by the writer, by a rebuild and by time travel."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, get_args
from uuid import UUID

from application.projections.run_rows import RunRow, run_row
from application.projections.session_rows import SessionRow, session_row
from domain.event_types import AnyEvent
from domain.run.events import RunEvent
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.events import SessionEvent
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.stamp import Stamp
from domain.stream import run_id_of, session_key_of

FOREVER = 2**62
"""The end position of a row that is still true."""

_RUN_EVENTS = get_args(RunEvent)
_SESSION_EVENTS = get_args(SessionEvent)

Row = TypeVar("Row")
Key = TypeVar("Key")


class Span(NamedTuple, Generic[Row]):
    """A row and the positions between which it was true: `from_position <= p < to_position`."""

    row: Row
    from_position: int
    to_position: int


@dataclass(slots=True)
class Changes(Generic[Key, Row]):
    """New rows of one projection, and for stored open rows the position at which they ended."""

    closed: dict[Key, int] = field(default_factory=dict)
    opened: list[Span[Row]] = field(default_factory=list)
    _last: dict[Key, int] = field(default_factory=dict)

    def put(self, key: Key, row: Row, position: int, *, first: bool) -> None:
        """The row as it is from `position` on; the one before it ends there."""
        last = self._last.get(key)
        if last is not None:
            before = self.opened[last]
            self.opened[last] = Span(before.row, before.from_position, position)
        elif not first:
            self.closed[key] = position
        self._last[key] = len(self.opened)
        self.opened.append(Span(row, position, FOREVER))


class Fold:
    """Carries the states of runs and sessions through events, and collects the rows they make."""

    def __init__(self, runs: Iterable[Run], sessions: Iterable[Session]) -> None:
        self.runs: dict[UUID, Run] = {run.run_id: run for run in runs}
        self.sessions: dict[str, Session] = {one.session_key: one for one in sessions}
        self.run_rows: Changes[UUID, RunRow] = Changes()
        self.session_rows: Changes[str, SessionRow] = Changes()

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
        if isinstance(event, _RUN_EVENTS):
            run_id = run_id_of(stream)
            assert run_id is not None
            before = self.runs.get(run_id)
            run = evolve_run(before, event, stamp)
            self.runs[run_id] = run
            self.run_rows.put(run_id, run_row(run), stamp.position, first=before is None)
        elif isinstance(event, _SESSION_EVENTS):
            key = session_key_of(stream)
            assert key is not None
            known = self.sessions.get(key)
            session = evolve_session(known, event, stamp)
            self.sessions[key] = session
            self.session_rows.put(key, session_row(session), stamp.position, first=known is None)
