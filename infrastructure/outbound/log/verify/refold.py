"""Folds pages of events once more, by the writer's own functions and in constant memory."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from application.ports.verifications import Difference
from domain.event_types import AnyEvent, ConfigurationActivated
from domain.run.evolve import evolve as evolve_run
from domain.run.state import Run
from domain.session.state import Session
from domain.session.state import evolve as evolve_session
from domain.values.record import (
    CONFIG_STREAM,
    RUN_PREFIX,
    SESSION_PREFIX,
    Stamp,
    run_stream,
    session_stream,
)
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.fold_input import (
    EVENTS_OF_RUNS,
    fold_rows_of_runs,
    values_of_runs,
)
from infrastructure.outbound.log.verify.projections import sessions_as_of
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow

STATES_MAX = 5_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReadEvent(NamedTuple):
    """An event where it stands, and the state it led to: of its run, or its session, or none."""

    position: int
    stream: str
    event: AnyEvent
    run: Run | None = None
    session: Session | None = None


def require_own_stream(read: ReadEvent) -> None:
    """`CorruptHistory` for an event that has no place in its stream: of another run or session, or
    of no kind that stands there."""
    stream, run, session = read.stream, read.run, read.session
    is_configuration = isinstance(read.event, ConfigurationActivated)
    if is_configuration or (run is None and session is None):
        if stream != CONFIG_STREAM or not is_configuration:
            raise CorruptHistory(f"{type(read.event).__name__} has no place in {stream}")
    elif run is not None and run_stream(run.run_id) != stream:
        raise CorruptHistory(f"{stream} is of run {run.run_id}")
    elif session is not None and session_stream(session.session_key) != stream:
        raise CorruptHistory(f"{stream} is of session {session.session_key}")


class RefoldResult(NamedTuple):
    """The events of a page up to the first that does not fit, and the states that they led to, by
    their positions: those behind the last event that a stream has in a transaction. `whole` is the
    last position of the last transaction whose end was seen, up to which these are all."""

    events: list[ReadEvent]
    whole: int
    runs: Mapping[int, Run]
    sessions: Mapping[int, Session]
    difference: Difference | None


class StatesBefore(Protocol):
    """Where the states are that are not in memory."""

    def runs(self, run_ids: Sequence[UUID], at: int) -> Iterable[Run]:
        """These runs as of position `at`, those that exist."""
        ...

    def sessions(self, keys: Sequence[str], at: int) -> Iterable[Session]:
        """These sessions as of position `at`, those that exist."""
        ...

    def put(self, states: Sequence[tuple[str, Run | Session]]) -> None:
        """These leave the memory, by their streams."""
        ...


class RecordedStates:
    """Implements `StatesBefore` by the log itself: sessions are read from their rows, runs folded
    from the events before."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._mapper = EventMapper()

    def runs(self, run_ids: Sequence[UUID], at: int) -> Iterator[Run]:
        """Rows that have ended hold no state, and those that have not may be of a later moment."""
        if not run_ids:
            return
        values = values_of_runs([(run_id, at) for run_id in run_ids])
        found = self._connection.execute(EVENTS_OF_RUNS, values, binary=True).fetchall()
        for _, run in fold_rows_of_runs(found, self._mapper):
            yield run

    def sessions(self, keys: Sequence[str], at: int) -> Sequence[Session]:
        """From their rows."""
        return sessions_as_of(self._connection, keys, at)

    def put(self, states: Sequence[tuple[str, Run | Session]]) -> None:
        """They are found again."""


class Refold:
    """Carries states from page to page; those that are not in memory are asked for.

    `whole` is the last position of a transaction, behind which the first page begins. Where rows
    end is not asked for, so that a wrong end leads to no wrong state.
    """

    def __init__(self, states: StatesBefore, whole: int) -> None:
        self._before = states
        self._mapper = EventMapper()
        # By stream, in the order of use.
        self._states: dict[str, Any] = {}
        self._whole = whole
        # Streams with events in the transaction that goes on, and where the last of these stand.
        self._open: dict[str, int] = {}
        self._microseconds = 0

    def fold(self, rows: Sequence[StoredEventRow], ends: Container[int]) -> RefoldResult:
        """The next page; `ends` are the last positions of the commits in it.

        Where the instant changes there was a commit too, whether it is noted or not.
        """
        events: list[ReadEvent] = []
        runs: dict[int, Run] = {}
        sessions: dict[int, Session] = {}
        instant = _EPOCH + timedelta(microseconds=self._microseconds)
        row = None
        try:
            self._remember(rows)
            for row in rows:
                if row.recorded_at != self._microseconds:
                    self._end_transaction(row.position - 1, runs, sessions)
                    self._microseconds = row.recorded_at
                    instant = _EPOCH + timedelta(microseconds=self._microseconds)
                event = self._event(row)
                run: Run | None = None
                session: Session | None = None
                if row.stream.startswith(RUN_PREFIX):
                    run = self._run(row, event, instant)
                elif row.stream.startswith(SESSION_PREFIX):
                    session = self._session(row, event, instant)
                read = ReadEvent(row.position, row.stream, event, run, session)
                require_own_stream(read)
                events.append(read)
                if row.position in ends:
                    self._end_transaction(row.position, runs, sessions)
        except _FoldMismatch as unfit:
            return RefoldResult(events, self._whole, runs, sessions, unfit.difference)
        except (CorruptHistory, AssertionError, ValueError, OverflowError) as error:
            here = (row or rows[0]).position
            reason = str(error) or "it cannot be what follows"
            text = f"the event does not fit what is on record before it: {reason[:300]}"
            difference = Difference(here, "projection", text)
            return RefoldResult(events, self._whole, runs, sessions, difference)
        self._forget()
        return RefoldResult(events, self._whole, runs, sessions, None)

    def _end_transaction(
        self, position: int, runs: dict[int, Run], sessions: dict[int, Session]
    ) -> None:
        """What was folded up to there is whole."""
        for stream, last in self._open.items():
            state = self._states[stream]
            if isinstance(state, Run):
                runs[last] = state
            else:
                sessions[last] = state
        self._open.clear()
        self._whole = position

    def _event(self, row: StoredEventRow) -> AnyEvent:
        try:
            return self._mapper.event(
                row.stream, row.version, row.type, row.type_version, row.state
            )
        except CorruptHistory:
            text = f"its bytes are no event of the type {row.type}"
            raise _FoldMismatch(Difference(row.position, "unreadable", text)) from None

    def _run(self, row: StoredEventRow, event: Any, instant: datetime) -> Any:
        before = self._states.pop(row.stream, None)
        _require_next_version(before, row)
        stamp = Stamp(row.position, row.version, instant, UUID(bytes=row.event_id))
        state = evolve_run(before, event, stamp)
        self._states[row.stream] = state
        self._open[row.stream] = row.position
        return state

    def _session(self, row: StoredEventRow, event: Any, instant: datetime) -> Any:
        before = self._states.pop(row.stream, None)
        _require_next_version(before, row)
        # A session does not say which event was its last.
        stamp = Stamp(row.position, row.version, instant)
        state = evolve_session(before, event, stamp)
        self._states[row.stream] = state
        self._open[row.stream] = row.position
        return state

    def _remember(self, rows: Sequence[StoredEventRow]) -> None:
        """Have the states in memory that the page goes on from."""
        states = self._states
        runs: list[UUID] = []
        sessions: list[str] = []
        streams: set[str] = set()
        for row in rows:
            stream = row.stream
            if stream in states or stream in streams:
                continue
            streams.add(stream)
            if row.version == 1:
                continue
            if stream.startswith(RUN_PREFIX):
                runs.append(UUID(stream.removeprefix(RUN_PREFIX)))
            elif stream.startswith(SESSION_PREFIX):
                sessions.append(stream.removeprefix(SESSION_PREFIX))
        at = rows[0].position - 1 if rows else 0
        for run in self._before.runs(runs, at):
            states[run_stream(run.run_id)] = run
        for session in self._before.sessions(sessions, at):
            states[session_stream(session.session_key)] = session

    def _forget(self) -> None:
        oldest = islice(self._states, max(0, len(self._states) - STATES_MAX))
        leaving = [stream for stream in oldest if stream not in self._open]
        self._before.put([(stream, self._states.pop(stream)) for stream in leaving])


def _require_next_version(before: Run | Session | None, row: StoredEventRow) -> None:
    last = before.version if before is not None else 0
    if row.version != last + 1:
        text = f"version {row.version} of {row.stream[:600]} follows version {last}"
        raise _FoldMismatch(Difference(row.position, "version", text))


class _FoldMismatch(Exception):
    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.text)
        self.difference = difference
