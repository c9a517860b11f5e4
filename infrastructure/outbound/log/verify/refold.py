"""Folds pages of events once more, by the writer's own functions and in constant memory."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from msgspec import convert

from application.ports.verifications import Difference
from domain.event_types import AnyEvent
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State, States, VersionGap
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistory
from infrastructure.outbound.log.codec.chain import instant_at
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.fold_input import (
    EVENTS_OF_RUNS,
    fold_rows,
    query_of_sessions,
    values_of_runs,
)
from infrastructure.outbound.log.verify.references import References
from infrastructure.outbound.log.verify.rows import ReadConnection, StoredEventRow

_NO_INSTANT = -(2**63)


def unfolded(mapper: EventMapper, row: StoredEventRow) -> AnyEvent:
    """The event of a row. `CorruptHistory` when it cannot be read."""
    return mapper.event(row.stream, row.version, row.type, row.type_version, row.state)


class RefoldResult(NamedTuple):
    """What the events of a page refer to, up to the first that does not fit, and the states that
    they led to, by their positions: those behind the last event that a stream has in a transaction.
    `versions` are those of their streams before the transaction, by the same positions.
    `whole` is the last position of the last transaction whose end was seen, up to which these are
    all."""

    references: References
    whole: int
    runs: Mapping[int, Run]
    sessions: Mapping[int, Session]
    versions: Mapping[int, int]
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
    """Implements `StatesBefore` by the log itself: runs are folded from the events before, sessions
    from the newest state that is stored and the events behind it."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._mapper = EventMapper()

    def load(self, missing: MissingStates, at: int) -> Iterator[State]:
        """Rows that have ended hold no state, and those that have not may be of a later moment."""
        if missing.runs:
            values = values_of_runs([(run_id, at) for run_id in missing.runs])
            found = self._connection.execute(EVENTS_OF_RUNS, values, binary=True).fetchall()
            yield from (one.last for one in fold_rows(found, self._mapper))
        if missing.sessions:
            query = query_of_sessions([(key, [at]) for key in missing.sessions])
            found = self._connection.execute(*query, binary=True).fetchall()
            yield from (one.last for one in fold_rows(found, self._mapper))

    def put(self, states: Sequence[State]) -> None:
        """They are found again."""


class Refold:
    """Carries states from page to page; those that are not in memory are asked for.

    `whole` is the last position of a transaction, behind which the first page begins, and
    `config_version` the version of the configuration's stream there. Where rows end is not asked
    for, so that a wrong end leads to no wrong state.
    """

    def __init__(
        self, before: StatesBefore, whole: int, *, log_id: UUID, config_version: int
    ) -> None:
        self._before = before
        self._mapper = EventMapper()
        self._memory = States()
        self._whole = whole
        self._log_id = log_id
        self._config_version = config_version
        # Of each stream in the transaction that goes on: the position of its last event, the state
        # behind that, and the version before its first one.
        self._open: dict[str, tuple[int, State, int]] = {}
        self._microseconds = _NO_INSTANT

    def fold(self, rows: Sequence[StoredEventRow], ends: Container[int]) -> RefoldResult:
        """The next page; `ends` are the last positions of the commits in it.

        Where the instant changes there was a commit too, whether it is noted or not.
        """
        references = References()
        runs: dict[int, Run] = {}
        sessions: dict[int, Session] = {}
        versions: dict[int, int] = {}
        difference: Difference | None = None
        position = rows[0].position if rows else 1
        decode, take, opened = self._mapper.event, self._memory.take, self._open
        is_read = True
        try:
            missing = self._memory.missing((one.stream, one.version) for one in rows)
            self._memory.put(self._before.load(missing, position - 1))
            for row in rows:
                position, stream, version, name, number, recorded_at, event_id = row[:7]
                if recorded_at != self._microseconds:
                    self._end_transaction(position - 1, runs, sessions, versions)
                    self._microseconds = recorded_at
                is_read = False
                event = decode(stream, version, name, number, row.state)
                is_read = True
                stamp = Stamp(position, version, instant_at(recorded_at), convert(event_id, UUID))
                _, state = take(stream, event, stamp)
                if state is not None:
                    known = opened.get(stream)
                    opened[stream] = position, state, known[2] if known else version - 1
                    references.add(stream, event, position, state.session_id)
                else:
                    self._take_configuration(stream, version)
                    references.add(stream, event, position, self._log_id)
                if position in ends:
                    self._end_transaction(position, runs, sessions, versions)
            self._shrink()
        except VersionGap as gap:
            difference = Difference(position, "version", str(gap))
        except (CorruptHistory, AssertionError, ValueError, OverflowError) as error:
            if is_read:
                reason = str(error) or "it cannot be what follows"
                text = f"the event does not fit what is on record before it: {reason[:300]}"
                difference = Difference(position, "projection", text)
            else:
                text = f"its bytes are no event of the type {name}"
                difference = Difference(position, "unreadable", text)
        return RefoldResult(references, self._whole, runs, sessions, versions, difference)

    def _end_transaction(
        self,
        position: int,
        runs: dict[int, Run],
        sessions: dict[int, Session],
        versions: dict[int, int],
    ) -> None:
        """What was folded up to there is whole."""
        for at, state, before in self._open.values():
            versions[at] = before
            if isinstance(state, Run):
                runs[at] = state
            else:
                sessions[at] = state
        self._open.clear()
        self._whole = position

    def _take_configuration(self, stream: str, version: int) -> None:
        """The only stream that leads to no state."""
        if version != self._config_version + 1:
            raise VersionGap(stream, version, self._config_version)
        self._config_version = version

    def _shrink(self) -> None:
        self._before.put(self._memory.shrink())
        # Of a transaction that goes on, the log has no rows to find them again.
        self._memory.put(state for _, state, _ in self._open.values())
