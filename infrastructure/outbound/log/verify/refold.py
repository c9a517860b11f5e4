"""Folds pages of events once more, by the writer's own functions and in constant memory."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from application.ports.verifications import Difference
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State, States, Step, StreamEvent, VersionGap
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.chain import instant_at
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.fold_input import (
    EVENTS_OF_RUNS,
    fold_rows_of_runs,
    values_of_runs,
)
from infrastructure.outbound.log.verify.projections import sessions_as_of
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow

ReadEvent = Step[StreamEvent]


def unfolded(mapper: EventMapper, row: StoredEventRow) -> ReadEvent:
    """The event of a row without any state. `CorruptHistory` when it cannot be read."""
    event = mapper.event(row.stream, row.version, row.type, row.type_version, row.state)
    event_id = UUID(bytes=row.event_id)
    stamp = Stamp(row.position, row.version, instant_at(row.recorded_at), event_id)
    return Step(StreamEvent(row.stream, event, stamp), None, None)


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

    def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """The states of these runs and sessions as of position `at`, those that exist."""
        ...

    def put(self, states: Sequence[State]) -> None:
        """These leave the memory."""
        ...


class RecordedStates:
    """Implements `StatesBefore` by the log itself: sessions are read from their rows, runs folded
    from the events before."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._mapper = EventMapper()

    def load(self, missing: MissingStates, at: int) -> Iterator[State]:
        """Rows that have ended hold no state, and those that have not may be of a later moment."""
        if missing.runs:
            values = values_of_runs([(run_id, at) for run_id in missing.runs])
            found = self._connection.execute(EVENTS_OF_RUNS, values, binary=True).fetchall()
            for _, run in fold_rows_of_runs(found, self._mapper):
                yield run
        yield from sessions_as_of(self._connection, missing.sessions, at)

    def put(self, states: Sequence[State]) -> None:
        """They are found again."""


class Refold:
    """Carries states from page to page; those that are not in memory are asked for.

    `whole` is the last position of a transaction, behind which the first page begins. Where rows
    end is not asked for, so that a wrong end leads to no wrong state.
    """

    def __init__(self, before: StatesBefore, whole: int) -> None:
        self._before = before
        self._mapper = EventMapper()
        self._memory = States()
        self._whole = whole
        # The last event of each stream in the transaction that goes on.
        self._open: dict[str, ReadEvent] = {}
        self._microseconds = 0

    def fold(self, rows: Sequence[StoredEventRow], ends: Container[int]) -> RefoldResult:
        """The next page; `ends` are the last positions of the commits in it.

        Where the instant changes there was a commit too, whether it is noted or not.
        """
        events: list[ReadEvent] = []
        runs: dict[int, Run] = {}
        sessions: dict[int, Session] = {}
        difference: Difference | None = None
        row = None
        try:
            missing = self._memory.missing((one.stream, one.version) for one in rows)
            self._memory.put(self._before.load(missing, rows[0].position - 1 if rows else 0))
            for row in rows:
                if row.recorded_at != self._microseconds:
                    self._end_transaction(row.position - 1, runs, sessions)
                    self._microseconds = row.recorded_at
                event = self._read(row)
                step = Step(event, *self._memory.take(*event))
                events.append(step)
                if step.after is not None:
                    self._open[row.stream] = step
                if row.position in ends:
                    self._end_transaction(row.position, runs, sessions)
            self._shrink()
        except _Unreadable as unreadable:
            difference = unreadable.difference
        except VersionGap as gap:
            assert row is not None
            difference = Difference(row.position, "version", str(gap))
        except (CorruptHistory, AssertionError, ValueError, OverflowError) as error:
            reason = str(error) or "it cannot be what follows"
            text = f"the event does not fit what is on record before it: {reason[:300]}"
            difference = Difference((row or rows[0]).position, "projection", text)
        return RefoldResult(events, self._whole, runs, sessions, difference)

    def _end_transaction(
        self, position: int, runs: dict[int, Run], sessions: dict[int, Session]
    ) -> None:
        """What was folded up to there is whole."""
        for (_, _, stamp), _, state in self._open.values():
            if isinstance(state, Run):
                runs[stamp.position] = state
            elif state is not None:
                sessions[stamp.position] = state
        self._open.clear()
        self._whole = position

    def _read(self, row: StoredEventRow) -> StreamEvent:
        try:
            return unfolded(self._mapper, row).at
        except CorruptHistory:
            text = f"its bytes are no event of the type {row.type}"
            raise _Unreadable(Difference(row.position, "unreadable", text)) from None

    def _shrink(self) -> None:
        self._before.put(self._memory.shrink())
        # Of a transaction that goes on, the log has no rows to find them again.
        self._memory.put(one.after for one in self._open.values() if one.after is not None)


class _Unreadable(Exception):
    def __init__(self, difference: Difference) -> None:
        super().__init__(difference.text)
        self.difference = difference
