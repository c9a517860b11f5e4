"""Folds the log page after page in constant memory, however many runs and sessions it tells of.

States stay in a bounded memory; one that was put out of it is loaded again when an event needs it.
"""

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID

from application.projections.catalog import PROJECTIONS
from application.projections.fold import FOREVER, Fold, RowChanges
from domain.event_types import AnyEvent
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import Stamp, run_id_of, session_key_of
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.codec.rows import RowEncoder
from infrastructure.outbound.log.schema.connections import LogConnection

StreamKey = TypeVar("StreamKey", bound=Hashable)
FoldedState = TypeVar("FoldedState")
EncodedRows = RowChanges[Any, bytes]


class FoldedEvent(NamedTuple):
    """What a fold needs of an event; `version` is its place in `stream`, from 1."""

    position: int
    stream: str
    version: int
    recorded_at: datetime
    event_id: UUID
    event: AnyEvent


class StreamPart(NamedTuple):
    """One of `of` parts of all streams, 0 up to `of - 1`; each stream is in one part, so that parts
    can be folded beside each other."""

    number: int
    of: int


WHOLE = StreamPart(0, 1)


async def read_folded(
    connection: LogConnection,
    mapper: EventMapper,
    *,
    after: int,
    until: int,
    limit: int,
    part: StreamPart = WHOLE,
) -> list[FoldedEvent]:
    """Events of the part behind `after` and not behind `until`, in order, at most `limit`.

    `CorruptHistory` when one cannot be read by this program.
    """
    cursor = await connection.execute(
        _EVENTS.format(in_part=_IN_PART if part.of > 1 else ""),
        {"after": after, "until": until, "limit": limit, "part": part.number, "parts": part.of},
        binary=True,
        prepare=True,
    )
    return [_folded_event(row, mapper) for row in await cursor.fetchall()]


_EVENTS = (
    "SELECT position, stream, version, recorded_at, event_id, type, type_version, state"
    " FROM events WHERE position > %(after)s AND position <= %(until)s{in_part}"
    " ORDER BY position LIMIT %(limit)s"
)
_IN_PART = " AND (hashtext(stream) & 2147483647) %% %(parts)s = %(part)s"


def _folded_event(row: Sequence[Any], mapper: EventMapper) -> FoldedEvent:
    position, stream, version, recorded_at, event_id, name, number, state = row
    event = mapper.event(stream, version, name, number, state)
    return FoldedEvent(position, stream, version, recorded_at, event_id, event)


class StateSource(Protocol):
    """Where states are found that are not in memory: as of position `at`, those that exist."""

    async def runs(self, run_ids: Sequence[UUID], at: int) -> Sequence[Run]:
        """The states of these runs."""
        ...

    async def sessions(self, keys: Sequence[str], at: int) -> Sequence[Session]:
        """The states of these sessions."""
        ...


class TableStates:
    """The states in a pair of tables: `runs` and `sessions`, or those that are being built.

    A row that is still true is found by the key alone, so that an index of those is enough for
    tables that end at `at`; only a row that was true once is looked for among all of its key.
    """

    def __init__(self, connection: LogConnection, runs_table: str, sessions_table: str) -> None:
        self._connection = connection
        self._runs = runs_table
        self._sessions = sessions_table

    async def runs(self, run_ids: Sequence[UUID], at: int) -> Sequence[Run]:
        """The states of these runs."""
        found = await self._find(self._runs, "run_id", "uuid", run_ids, at)
        return [Run.model_validate_json(state) for state in found]

    async def sessions(self, keys: Sequence[str], at: int) -> Sequence[Session]:
        """The states of these sessions."""
        found = await self._find(self._sessions, "session_key", "text", keys, at)
        return [Session.model_validate_json(state) for state in found]

    async def _find(
        self, table: str, key: str, kind: str, keys: Sequence[object], at: int
    ) -> list[str]:
        found: list[str] = []
        later: list[object] = []
        rows = await self._connection.execute(
            f"SELECT {key}, from_position, state::text FROM {table}"
            f" WHERE {key} = ANY(%s::{kind}[]) AND to_position = {FOREVER}",
            [list(keys)],
        )
        for one, from_position, state in await rows.fetchall():
            if from_position <= at:
                found.append(state)
            else:
                later.append(one)
        if later:
            rows = await self._connection.execute(
                f"SELECT state::text FROM {table} WHERE {key} = ANY(%s::{kind}[])"
                " AND from_position <= %s AND to_position > %s",
                [later, at, at],
            )
            found += [row[0] for row in await rows.fetchall()]
        return found


class PagedFold:
    """Folds page after page of events in constant memory: the states that a page needs and that
    are not in the bounded memory are loaded from the source.

    `states_max` is how many states of each kind are kept between two pages.
    """

    def __init__(self, source: StateSource, *, states_max: int) -> None:
        self._source = source
        self._states_max = states_max
        self._encoders = {one.name: RowEncoder(one) for one in PROJECTIONS}
        self._fold = Fold((), (), lambda one: self._encoders[one.name].encode)

    @property
    def states_count(self) -> int:
        """How many states are in memory."""
        return len(self._fold.runs) + len(self._fold.sessions)

    async def fold(self, page: Sequence[FoldedEvent]) -> dict[str, EncodedRows]:
        """The changes of the encoded rows that a page makes, by projection; the pages come in
        order, without gaps.

        `CorruptHistory` when an event does not fit the state before it. After an error the fold is
        not usable any more.
        """
        fold = self._fold
        runs, sessions = await self._remember(page)
        for position, stream, version, recorded_at, event_id, event in page:
            fold.apply(stream, event, Stamp(position, version, recorded_at, event_id))
        _forget(fold.runs, runs, self._states_max)
        _forget(fold.sessions, sessions, self._states_max)
        for encoder in self._encoders.values():
            encoder.forget()
        return fold.take_rows()

    async def _remember(self, page: Sequence[FoldedEvent]) -> tuple[set[UUID], set[str]]:
        """Have the states in memory that the page goes on from; gives whose events are in it."""
        first = {one.stream: one.version for one in reversed(page)}
        runs: set[UUID] = set()
        sessions: set[str] = set()
        missing_runs: list[UUID] = []
        missing_sessions: list[str] = []
        for stream, version in first.items():
            run_id, key = run_id_of(stream), session_key_of(stream)
            if run_id is not None:
                runs.add(run_id)
                if version > 1 and run_id not in self._fold.runs:
                    missing_runs.append(run_id)
            elif key is not None:
                sessions.add(key)
                if version > 1 and key not in self._fold.sessions:
                    missing_sessions.append(key)
        at = page[0].position - 1 if page else 0
        if missing_runs:
            for run in await self._source.runs(missing_runs, at):
                self._fold.runs[run.run_id] = run
        if missing_sessions:
            for session in await self._source.sessions(missing_sessions, at):
                self._fold.sessions[session.session_key] = session
        return runs, sessions


def _forget(states: dict[StreamKey, FoldedState], used: Iterable[StreamKey], most: int) -> None:
    """Keep the `most` states that were used last: a dict is in the order of use."""
    for key in used:
        state = states.pop(key, None)
        if state is not None:
            states[key] = state
    for key in list(states)[: max(0, len(states) - most)]:
        del states[key]
