"""Input of a fold: events in order with the ends of their transactions, and the states before
them."""

import asyncio
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from msgspec import DecodeError, convert

from application.ports.run_bars import ReachedStage
from application.projections.fold import FOREVER, Fold, StateSource, load_missing
from domain.run.lifecycle import STAGE_REACHED_BY
from domain.run.state import Run
from domain.session.state import Session
from domain.states import MissingStates, State, States, StreamEvent
from domain.values.record import SESSION_PREFIX, Stamp, run_stream
from domain.values.refusals import CorruptHistoryError
from infrastructure.outbound.log.codec.chain import YEAR_2000_MICROSECONDS, instant_at
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.schema.connections import LogConnection

_Key = TypeVar("_Key", UUID, str)


class FoldPage(NamedTuple):
    """Events after position `after`, which ends a transaction.

    `ends` are the last positions of their transactions, including transactions without an event in
    this page. If the end of the last transaction is missing from `ends`, that transaction may
    continue.
    """

    after: int
    events: Sequence[StreamEvent]
    ends: Sequence[int]


class StreamPart(NamedTuple):
    """Part `number` (from 0 to `of - 1`) of all streams. Each stream belongs to one part, so that
    parts can be folded in parallel."""

    number: int
    of: int


WHOLE = StreamPart(0, 1)
SPAN_POSITIONS_MAX = 256
"""Beyond this many positions, a session is folded again from a later stored state, because it may
have had as many events in between."""
RUNS_AT_ONCE = 50
"""Number of runs folded without a pause; each has about a dozen events."""


@cache
def plain_mapper() -> EventMapper:
    """Return the shared mapper of stored events. Creating a mapper takes as long as folding a
    run."""
    return EventMapper()


async def read_page(
    connection: LogConnection,
    mapper: EventMapper,
    *,
    after: int,
    until: int,
    part: StreamPart = WHOLE,
) -> FoldPage:
    """Return the events of the part after position `after`, up to and including `until`.

    Raises:
        CorruptHistoryError: This program cannot read an event.
    """
    ends = await connection.execute(_ENDS, [after, until], prepare=True)
    in_part = _IN_PART.format(part.of, part.number) if part.of > 1 else ""
    rows = await connection.copy_out(_EVENTS.format(after, until, in_part))
    events = [_copied_event(row, mapper) for row in rows]
    return FoldPage(after, events, [row[0] for row in await ends.fetchall()])


async def read_stream(
    connection: LogConnection, mapper: EventMapper, stream: str, *, until: int
) -> list[StreamEvent]:
    """Return the events of a stream up to version `until`.

    Raises:
        CorruptHistoryError: This program cannot read an event.
    """
    cursor = await connection.execute(_OF_STREAM, [stream, until], binary=True)
    return [folded_event(row, mapper) for row in await cursor.fetchall()]


class FoldedRun(NamedTuple):
    """A run as of a position, and the stages that it had reached."""

    run: Run
    stages: Sequence[ReachedStage]


async def runs_folded(
    connection: LogConnection, wanted: Sequence[tuple[UUID, int]]
) -> dict[tuple[UUID, int], FoldedRun]:
    """Return the states of runs, each as of a position, folded from their events alone, because
    ended rows hold no state. A run that does not exist at its position is missing. A run wanted as
    of several positions is folded once.

    Raises:
        CorruptHistoryError: This program cannot fold an event.
    """
    positions = _positions_of(wanted)
    run_ids = list(positions)
    found: dict[tuple[UUID, int], FoldedRun] = {}
    for first in range(0, len(run_ids), RUNS_AT_ONCE):
        page = run_ids[first : first + RUNS_AT_ONCE]
        values = values_of_runs([(run_id, max(positions[run_id])) for run_id in page])
        cursor = await connection.execute(EVENTS_OF_RUNS, values, binary=True, prepare=True)
        for folded in fold_rows(await cursor.fetchall(), plain_mapper()):
            run_id = page[folded.place - 1]
            for at in positions[run_id]:
                run = folded.as_of(at)
                if run is not None:
                    found[run_id, at] = FoldedRun(cast("Run", run), folded.stages_as_of(at))
        await asyncio.sleep(0)
    return found


def _positions_of(wanted: Iterable[tuple[_Key, int]]) -> dict[_Key, list[int]]:
    positions: dict[_Key, list[int]] = {}
    for key, at in wanted:
        positions.setdefault(key, []).append(at)
    return positions


def values_of_runs(wanted: Sequence[tuple[UUID, int]]) -> list[list[Any]]:
    """Return the values of `EVENTS_OF_RUNS` for runs, each as of a position."""
    return [[run_stream(run_id) for run_id, _ in wanted], [at for _, at in wanted]]


def query_of_sessions(
    wanted: Sequence[tuple[str, Sequence[int]]], table: str = "sessions"
) -> tuple[str, list[Any]]:
    """Return the query whose rows `fold_rows` folds, and its values.

    Args:
        wanted: Sessions by key, each with positions that end transactions.
        table: The table that holds the session rows.
    """
    ends = [positions for _, positions in wanted]
    keys = [key for key, _ in wanted]
    return _SESSIONS.format(table=table), [keys, [*map(min, ends)], [*map(max, ends)]]


def spans_of(wanted: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Return keys, each with the ordered positions that one fold covers."""
    spans: list[tuple[str, list[int]]] = []
    for key, at in sorted(wanted):
        if spans and spans[-1][0] == key and at - spans[-1][1][0] <= SPAN_POSITIONS_MAX:
            spans[-1][1].append(at)
        else:
            spans.append((key, [at]))
    return spans


class FoldedStream(NamedTuple):
    """The states of a run or session, each with the position of its last event, in order. If the
    fold began with a stored state, that state comes first, at position 0.

    `place` identifies the stream in the query: its 1-based index, or its name.
    """

    place: Any
    states: Sequence[tuple[int, State]]
    stages: Sequence[ReachedStage]

    def as_of(self, at: int) -> State | None:
        """Return the state as of a position, or None if the run or session did not exist."""
        return next((state for position, state in reversed(self.states) if position <= at), None)

    def stages_as_of(self, at: int) -> Sequence[ReachedStage]:
        """Return the stages that a run had reached as of a position."""
        return [stage for stage in self.stages if stage.position <= at]

    @property
    def last(self) -> State:
        """Return the state after the last event."""
        return self.states[-1][1]


def fold_rows(rows: Iterable[Sequence[Any]], mapper: EventMapper) -> Iterator[FoldedStream]:
    """Yield each run or session that exists.

    Args:
        rows: Grouped by place. Each row has the place, a stored state or None, and the columns of
            an event to fold or None.
        mapper: Decoder of the events.

    Raises:
        CorruptHistoryError: This program cannot fold an event or a state.
    """
    for place, rows_of_stream in groupby(rows, key=itemgetter(0)):
        memory, found, stages = States(), list[tuple[int, State]](), list[ReachedStage]()
        for _, text, *row in rows_of_stream:
            if text is not None:
                session = _stored_session(text)
                memory.put([session])
                found.append((0, session))
            if row[0] is not None:
                stream, event, stamp = folded_event(row, mapper)
                _, after = memory.take(stream, event, stamp)
                found.append((stamp.position, cast("State", after)))
                stage = STAGE_REACHED_BY.get(type(event).__name__)
                if stage is not None:
                    stages.append(ReachedStage(stage, stamp.position, stamp.recorded_at))
        if found:
            yield FoldedStream(place, found, stages)


def _stored_session(text: str) -> Session:
    try:
        return Session.from_json(text)
    except DecodeError as error:
        raise CorruptHistoryError("a row of sessions holds no state") from error


async def sessions_folded(
    connection: LogConnection, wanted: Sequence[tuple[str, int]], table: str = "sessions"
) -> dict[tuple[str, int], Session]:
    """Return sessions, each as of a position that ends a transaction, folded from the newest state
    that one of its rows still holds and the events after that. A session that does not exist at its
    position is missing.

    Raises:
        CorruptHistoryError: This program cannot fold an event or a state.
    """
    if not wanted:
        return {}
    spans = spans_of(wanted)
    cursor = await connection.execute(*query_of_sessions(spans, table), binary=True, prepare=True)
    found: dict[tuple[str, int], Session] = {}
    for folded in fold_rows(await cursor.fetchall(), plain_mapper()):
        key, positions = spans[folded.place - 1]
        for at in positions:
            session = folded.as_of(at)
            if session is not None:
                found[key, at] = cast("Session", session)
    return found


async def end_of_transaction(connection: LogConnection, position: int) -> int | None:
    """Return the last position of the transaction that contains a position, or None if the position
    is not recorded."""
    cursor = await connection.execute(_END, [position], prepare=True)
    row = await cursor.fetchone()
    return int(row[0]) if row is not None else None


_ENDS = (
    "SELECT last_position FROM commits WHERE last_position > %s AND last_position <= %s"
    " ORDER BY last_position"
)
_END = "SELECT last_position FROM commits WHERE last_position >= %s ORDER BY last_position LIMIT 1"
EVENT_COLUMNS = "position, stream, version, recorded_at, event_id, type, type_version, state"
_OF_STREAM = (
    f"SELECT {EVENT_COLUMNS} FROM events WHERE stream = %s AND version <= %s ORDER BY version"
)
# Each stream separately by its index, whatever statistics the planner has.
EVENTS_OF_RUNS = (
    "SELECT t.place, NULL, one.* FROM unnest(%s::text[], %s::bigint[]) WITH ORDINALITY"
    " AS t (stream, until, place) CROSS JOIN LATERAL"
    f" (SELECT {EVENT_COLUMNS} FROM events WHERE events.stream = t.stream AND position <= t.until"
    " ORDER BY version) AS one ORDER BY t.place, one.version"
)
_SESSIONS = (
    "SELECT t.place, CASE WHEN coalesce(one.version = base.version + 1, true) THEN base.state END,"
    " one.* FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) WITH ORDINALITY"
    " AS t (key, first, until, place)"
    " CROSS JOIN LATERAL (SELECT version FROM {table} WHERE {table}.session_key = t.key"
    " AND from_position <= t.until ORDER BY from_position DESC LIMIT 1) AS newest"
    " LEFT JOIN LATERAL (SELECT version, state FROM {table} WHERE {table}.session_key = t.key"
    " AND from_position <= t.first AND state IS NOT NULL ORDER BY from_position DESC LIMIT 1)"
    " AS base ON true LEFT JOIN LATERAL"
    f" (SELECT {EVENT_COLUMNS} FROM events WHERE events.stream = '{SESSION_PREFIX}' || t.key"
    " AND version > coalesce(base.version, 0) AND version <= newest.version ORDER BY version)"
    " AS one ON true ORDER BY t.place, one.version"
)
_EVENTS = (
    "COPY (SELECT position, version, type_version, recorded_at, event_id, stream, type, state"
    " FROM events WHERE position > {} AND position <= {}{} ORDER BY position)"
    " TO STDOUT (FORMAT BINARY)"
)
_IN_PART = " AND (hashtext(stream) & 2147483647) % {} = {}"
_COPIED = struct.Struct(">6xq4xi4xh4xq4x16si")
_LENGTH = struct.Struct(">i")


def _copied_event(row: bytes, mapper: EventMapper) -> StreamEvent:
    """Return the event of a row of `_EVENTS`, like `folded_event`."""
    position, version, number, recorded_at, event_id, size = _COPIED.unpack_from(row)
    at = _COPIED.size + size
    stream = row[_COPIED.size : at].decode()
    name_at = at + _LENGTH.size
    state_at = name_at + _LENGTH.unpack_from(row, at)[0] + _LENGTH.size
    name = row[name_at : state_at - _LENGTH.size].decode()
    event = mapper.event(stream, version, name, number, row[state_at:])
    instant = instant_at(recorded_at + YEAR_2000_MICROSECONDS)
    return StreamEvent(stream, event, Stamp(position, version, instant, convert(event_id, UUID)))


def folded_event(row: Sequence[Any], mapper: EventMapper) -> StreamEvent:
    """Return the event of a row of `EVENT_COLUMNS`.

    Raises:
        CorruptHistoryError: This program cannot read the event.
    """
    position, stream, version, recorded_at, event_id, name, number, state = row
    event = mapper.event(stream, version, name, number, state)
    return StreamEvent(stream, event, Stamp(position, version, recorded_at, event_id))


class TableStates:
    """States in a pair of tables: the live `runs` and `sessions`, or those that a rebuild fills.

    A current row is found by its key alone, so a table that ends at `at` needs only an index of
    current rows. If the current row of a key began after `at`, the state is folded from events, and
    a session's also from its earlier rows.
    """

    def __init__(self, connection: LogConnection, runs_table: str, sessions_table: str) -> None:
        self._connection = connection
        self._runs = runs_table
        self._sessions = sessions_table

    async def load(self, missing: MissingStates, at: int) -> Iterable[State]:
        """Return the states of these runs and sessions as of position `at`."""
        found, later = await self._find(self._runs, "run_id", "uuid", missing.runs, at)
        folded = await runs_folded(self._connection, [(run_id, at) for run_id in later])
        runs = (*map(Run.from_json, found), *(past.run for past in folded.values()))
        return (*runs, *await self._load_sessions(missing.sessions, at))

    async def _load_sessions(self, keys: Sequence[str], at: int) -> Iterable[Session]:
        found, later = await self._find(self._sessions, "session_key", "text", keys, at)
        wanted = [(key, at) for key in later]
        folded = await sessions_folded(self._connection, wanted, self._sessions)
        return (*map(Session.from_json, found), *folded.values())

    async def _find(
        self, table: str, key: str, kind: str, keys: Sequence[_Key], at: int
    ) -> tuple[list[str], list[_Key]]:
        """Return the current states that were already valid as of `at`, and the keys whose state
        has changed since."""
        found: list[str] = []
        later: list[_Key] = []
        if not keys:
            return found, later
        rows = await self._connection.execute(
            f"SELECT {key}, from_position, state::text FROM {table}"
            f" WHERE {key} = ANY(%s::{kind}[]) AND to_position = {FOREVER}",
            [list(keys)],
        )
        for found_key, from_position, state in await rows.fetchall():
            if from_position <= at:
                found.append(state)
            else:
                later.append(found_key)
        return found, later


async def fold_page(fold: Fold, page: FoldPage, source: StateSource) -> None:
    """Apply a page to the fold. States that the fold lacks are loaded first.

    Raises:
        CorruptHistoryError: An event does not fit the state before it. The fold is unusable
            afterwards.
    """
    await load_missing(fold.states, page.events, source, page.after)
    ends = iter(page.ends)
    end = next(ends, FOREVER)
    for event in page.events:
        while event.stamp.position > end:
            fold.end_transaction()
            end = next(ends, FOREVER)
        fold.apply(*event)
    fold.end_transaction()
