"""Fold of pages of events for verification, with the writer's own functions and in bounded
memory."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from msgspec import convert

from application.ports.verifications import Difference
from domain.event_types import AnyEvent
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State, States, VersionGapError
from domain.values.record import Stamp
from domain.values.refusals import CorruptHistoryError
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
    """Return the event of a row.

    Raises:
        CorruptHistoryError: It cannot be decoded.
    """
    return mapper.event(row.stream, row.version, row.type, row.type_version, row.state)


class RefoldResult(NamedTuple):
    """Result of folding a page, up to the first event that does not fit.

    `runs` and `sessions` are the states after the last event of each stream in a transaction, by
    the position of that event. `versions` are the versions of the streams before the transaction,
    by the same positions. `whole` is the last position of the last transaction that has ended; the
    states are complete up to there.
    """

    references: References
    whole: int
    runs: Mapping[int, Run]
    sessions: Mapping[int, Session]
    versions: Mapping[int, int]
    difference: Difference | None


class StatesBefore(Protocol):
    """Store of the states that are not in memory."""

    def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """Return the states of these runs and sessions as of position `at`; those that do not exist
        are missing."""
        ...

    def put(self, states: Sequence[State]) -> None:
        """Take over states that are evicted from memory."""
        ...


class RecordedStates:
    """States that are read from the log itself; implements `StatesBefore`. Runs are folded from
    their earlier events, sessions from the newest stored state and the events after it."""

    def __init__(self, connection: ReadConnection) -> None:
        self._connection = connection
        self._mapper = EventMapper()

    def load(self, missing: MissingStates, at: int) -> Iterator[State]:
        """Yield the states. They are folded because ended rows hold no state, and a current row may
        be of a later position."""
        if missing.runs:
            values = values_of_runs([(run_id, at) for run_id in missing.runs])
            found = self._connection.execute(EVENTS_OF_RUNS, values, binary=True).fetchall()
            yield from (stream.last for stream in fold_rows(found, self._mapper))
        if missing.sessions:
            query = query_of_sessions([(key, [at]) for key in missing.sessions])
            found = self._connection.execute(*query, binary=True).fetchall()
            yield from (stream.last for stream in fold_rows(found, self._mapper))

    def put(self, states: Sequence[State]) -> None:
        """Do nothing: states are read again from the log."""


class Refold:
    """Fold that carries states from page to page. States that are not in memory are loaded.

    `whole` is the last position of a transaction; the first page begins after it. `config_version`
    is the version of the configuration's stream there. The ends of rows are never used, so a wrong
    end leads to no wrong state.
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
        # By stream in the open transaction: the position of its last event, the state after it, and
        # the version before its first event.
        self._open: dict[str, tuple[int, State, int]] = {}
        self._microseconds = _NO_INSTANT

    def fold(self, rows: Sequence[StoredEventRow], ends: Container[int]) -> RefoldResult:
        """Fold the next page. `ends` are the last positions of the commits in it.

        A change of the recorded time ends a transaction too, even if the commit is missing from
        `ends`.
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
            missing = self._memory.missing((row.stream, row.version) for row in rows)
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
        except VersionGapError as gap:
            difference = Difference(position, "version", str(gap))
        except (CorruptHistoryError, AssertionError, ValueError, OverflowError) as error:
            if is_read:
                reason = str(error) or "it cannot follow here"
                text = f"the event does not fit the events before it: {reason[:300]}"
                difference = Difference(position, "projection", text)
            else:
                text = f"its bytes are not a valid event of the type {name}"
                difference = Difference(position, "unreadable", text)
        return RefoldResult(references, self._whole, runs, sessions, versions, difference)

    def _end_transaction(
        self,
        position: int,
        runs: dict[int, Run],
        sessions: dict[int, Session],
        versions: dict[int, int],
    ) -> None:
        """Add the states of the open transaction, which ended at this position, to the results."""
        for at, state, before in self._open.values():
            versions[at] = before
            if isinstance(state, Run):
                runs[at] = state
            else:
                sessions[at] = state
        self._open.clear()
        self._whole = position

    def _take_configuration(self, stream: str, version: int) -> None:
        """Check the version of the configuration's stream, the only one without a state."""
        if version != self._config_version + 1:
            raise VersionGapError(stream, version, self._config_version)
        self._config_version = version

    def _shrink(self) -> None:
        self._before.put(self._memory.shrink())
        # The log has no rows yet from which to load states of the open transaction.
        self._memory.put(state for _, state, _ in self._open.values())
