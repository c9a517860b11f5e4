"""Database in memory: the record, the append lock, and the lines to it.

Several servers share one `Store`, each by its own `Line`. It folds events into rows with the
product's code. A `Fault` removes one guarantee, to show that tests detect it.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID, uuid4

import orjson
import psycopg
from psycopg.pq import TransactionStatus

from application.log.envelope import RecordedEvent
from application.log.event_log import (
    Content,
    LaneFacts,
    LogUnavailableError,
    Reserved,
    StagedFile,
    TreeQuery,
)
from application.ports.transcripts import RecordedEntry
from application.projections.fold import FOREVER, Fold, RowChanges, RowSpan
from application.projections.run_rows import RunRow
from application.projections.session_rows import SessionRow
from domain.event_types import LOG_FORMAT
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import CONFIG_STREAM, run_id_of, run_stream, session_key_of
from infrastructure.outbound.log.append import load
from infrastructure.outbound.log.append.batch import Batch, first_in_line
from infrastructure.outbound.log.append.ledger import Head, ReadPlan
from infrastructure.outbound.log.append.load import (
    LaneKey,
    ReadRequest,
    ReadResult,
    ReservationKey,
    reservation_key,
)
from infrastructure.outbound.log.read.state_cache import StateCache, StateCaches, StateMark
from infrastructure.outbound.log.schema.followers import GIVE_UP

T = TypeVar("T")
K = TypeVar("K")
Row = TypeVar("Row", RunRow, SessionRow)


class Fault(Enum):
    """A guarantee that is left out."""

    NO_APPEND_LOCK = auto()
    LEDGER_KEPT = auto()
    GIVEN_UP_UNSTORED = auto()
    ENDED_SESSION_STORES = auto()
    NO_EPOCH_FENCE = auto()
    NO_TRANSCRIPT_FENCE = auto()
    TIME_RUNS_BACK = auto()
    COMMIT_FATE_UNKNOWN = auto()
    COMMITS_NOT_DURABLE = auto()
    OPENED_BEFORE_CLOSED = auto()
    REMEMBERED_UNCHECKED = auto()
    SEAL_UNCHECKED = auto()


class LineLost(psycopg.OperationalError):
    """The connection broke, and it is unknown whether the request arrived."""


class Line:
    """A server's way to the store. This one is quick, and never breaks."""

    async def send(self) -> None:
        """Delay a request.

        Raises:
            LineLost: The connection broke.
        """
        await asyncio.sleep(0)

    async def receive(self) -> None:
        """Delay an answer.

        Raises:
            LineLost: The connection broke.
        """
        await asyncio.sleep(0)

    async def confirm(self) -> None:
        """Delay the confirmation of a commit.

        Raises:
            LineLost: The connection broke.
        """
        await self.receive()

    def late_seconds(self) -> float | None:
        """Return the delay of a notification in seconds, or None if it is lost."""
        return 0.0

    async def ask(
        self, question: Callable[[], T], turn: Callable[[], Awaitable[None]] | None = None
    ) -> T:
        """Ask the store, which answers when it is the question's turn. Raises
        `LogUnavailableError`: then it may have been done or not."""
        try:
            await self.send()
            if turn is not None:
                await turn()
            answer = question()
            await self.receive()
        except LineLost:
            raise LogUnavailableError("the database is unavailable; retry in a moment") from None
        return answer


class Answer:
    """Rows of each statement of a message."""

    description = ()

    def __init__(self, results: Sequence[Sequence[Any]]) -> None:
        self._results = results
        self._at = 0

    async def fetchall(self) -> Sequence[Any]:
        return self._results[self._at]

    def nextset(self) -> bool:
        """Move to the next statement. Return False if there is none."""
        self._at += 1
        return self._at < len(self._results)


LOCK_STEPS = ("try", "wait", "waited", "store", "tell", "give_up")
"""Steps of a writer with the append lock. A waiting one has it at its next step."""


class StoreSession:
    """A writer's session, in the place of its connection: it has the append lock, or waits for it.

    It knows the statements that a writer sends about the lock, by how they begin.
    """

    is_doubtful = False

    def __init__(self, store: "Store", line: Line) -> None:
        self.line = line
        self.closed = False
        self.step = "connect"
        self._store = store
        store.sessions_begun += 1
        self.number = store.sessions_begun
        store.writers.append(self)

    @property
    def info(self) -> SimpleNamespace:
        """Return the identity of the session, and whether it has begun a transaction."""
        status = TransactionStatus.INTRANS if self._store.finishes(self) else TransactionStatus.IDLE
        return SimpleNamespace(backend_pid=self.number, transaction_status=status)

    async def execute(self, statements: str, values: Any = None, *, prepare: Any = None) -> Answer:
        """Carry out a message. Raises `LineLost`."""
        await self.line.send()
        results = [await self._store.execute(self, part, values) for part in statements.split("; ")]
        await self.line.receive()
        return Answer(results)

    async def close(self) -> None:
        """End the session and roll back its transaction."""
        self._store.end(self)


class StoredReservation(NamedTuple):
    """An idempotency record and when it was written."""

    reserved: Reserved
    created_at: datetime


class CommittedAppend(NamedTuple):
    """Time and last position of an append."""

    recorded_at: datetime
    last_position: int


@dataclass(slots=True)
class Lease:
    """Time until which a server, or its claim of some work, counts as alive."""

    holder: str
    until: datetime
    url: str | None = None
    is_closed: bool = False


@dataclass(slots=True)
class StoredDueFile:
    """The file of a run's transcript that is to be written."""

    run_id: UUID
    is_archived: bool
    due_at: datetime


class _AnyNumber(int):
    """Equal to any value."""

    __hash__ = int.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False


def utc_now() -> datetime:
    return datetime.now(UTC)


class Rows(Generic[K, Row]):
    """All rows of a projection. `current` are those that are true now, in order of creation."""

    def __init__(self) -> None:
        self.spans: dict[K, list[RowSpan[Row]]] = {}
        self.current: dict[K, RowSpan[Row]] = {}

    def take(self, changes: RowChanges[K, Row], *, is_opened_first: bool) -> None:
        """Apply the rows of an append.

        With `is_opened_first`, the row to end is looked up after the new one was added, so that the
        new one is found.
        """
        for key, ended in changes.closed.items():
            if not is_opened_first:
                before = self.current[key]
                self.spans[key][-1] = before._replace(to_position=ended)
        for span in changes.opened:
            key = _key_of(span.row)
            if is_opened_first and span.to_position == FOREVER and key in changes.closed:
                self.spans[key].insert(-1, span._replace(to_position=changes.closed[key]))
                continue
            self.spans.setdefault(key, []).append(span)
            if span.to_position == FOREVER:
                self.current[key] = span

    def rows(self) -> Iterator[Row]:
        return (span.row for span in self.current.values())

    def now(self, key: K) -> Row | None:
        span = self.current.get(key)
        return span.row if span is not None else None

    def at(self, key: K, position: int) -> Row | None:
        """Return the row of a key at a position, which is the last one of an append."""
        for span in self.spans.get(key, ()):
            if span.from_position <= position < span.to_position:
                return span.row
        return None


class RowsAt(Generic[K, Row]):
    """Rows of a projection as of position `end`, except for those that the next append had
    `changed` by then.
    """

    def __init__(self, rows: Rows[K, Row], end: int, changed: RowChanges[K, Row]) -> None:
        self._rows: Rows[K, Row] = rows
        self._end = end
        self._changed: dict[K, Row] = {_key_of(item.row): item.row for item in changed.opened}

    def of(self, key: K) -> Row | None:
        return self._changed.get(key) or self._rows.at(key, self._end)

    def rows(self) -> Iterator[Row]:
        found = (self.of(key) for key in self._rows.current)
        return (row for row in found if row is not None)


def _key_of(row: Any) -> Any:
    return row.run_id if isinstance(row, RunRow) else row.session_key


class Store:
    """One log with everything beside it. `now` is the database's clock."""

    def __init__(
        self, *, now: Callable[[], datetime] = utc_now, faults: frozenset[Fault] = frozenset()
    ) -> None:
        self.now = now
        self.faults = faults
        self.log_id = uuid4()
        self.events: list[RecordedEvent] = []
        self.commits: list[CommittedAppend] = []
        self.runs: Rows[UUID, RunRow] = Rows()
        self.sessions: Rows[str, SessionRow] = Rows()
        self.contents: dict[UUID, Content] = {}
        self.content_keys: dict[UUID, bytes] = {}
        self.reserved: dict[ReservationKey, StoredReservation] = {}
        self.staged: dict[UUID, list[StagedFile]] = {}
        self.due_files: dict[UUID, StoredDueFile] = {}
        self.leases: dict[str, Lease] = {}
        self.claims: dict[tuple[str, UUID], Lease] = {}
        self.entries: dict[UUID, dict[int, RecordedEntry]] = {}
        self.files: dict[str, tuple[bytes, ...]] = {}
        self.listeners: list[Callable[[int, str], None]] = []
        self._config_version = 0
        self.writers: list[StoreSession] = []
        self.sessions_begun = 0
        self.on_step: Callable[[StoreSession], None] = lambda _: None
        self._owner: StoreSession | None = None
        self._waiting: deque[tuple[StoreSession, asyncio.Future[None]]] = deque()
        self._finishing: dict[UUID, StoreSession] = {}
        self._writing: list[asyncio.Future[None]] = []

    @property
    def position(self) -> int:
        """Return the last position; 0 for an empty log."""
        return self.events[-1].envelope.position if self.events else 0

    def end_before(self, position: int) -> int:
        """Return the last position of the last append that ended at or before a position."""
        ended = bisect_right(self.commits, position, key=lambda commit: commit.last_position)
        return self.commits[ended - 1].last_position if ended else 0

    def runs_at(self, position: int) -> RowsAt[UUID, RunRow]:
        end = self.end_before(position)
        return RowsAt(self.runs, end, self._changes(end, position)["runs"])

    def sessions_at(self, position: int) -> RowsAt[str, SessionRow]:
        end = self.end_before(position)
        return RowsAt(self.sessions, end, self._changes(end, position)["sessions"])

    def _changes(self, end: int, position: int) -> dict[str, RowChanges[Any, Any]]:
        """Return the changes by the events after the end of an append, up to a position inside the
        next.
        """
        events = self.events[end:position]
        streams = {event.envelope.stream for event in events}
        run_ids = [run_id for stream in streams if (run_id := run_id_of(stream)) is not None]
        keys = [key for stream in streams if (key := session_key_of(stream)) is not None]
        fold = Fold(
            [run.state for item in run_ids if (run := self.runs.at(item, end)) is not None],
            [known.state for key in keys if (known := self.sessions.at(key, end)) is not None],
        )
        for recorded in events:
            fold.apply(recorded.envelope.stream, recorded.event, recorded.envelope.stamp)
        fold.end_transaction()
        return fold.take_rows()

    def run_at_version(self, run_id: UUID, version: int) -> Run | None:
        stream = run_stream(run_id)
        places = (event.envelope for event in self.events if event.envelope.stream == stream)
        position = next((place.position for place in places if place.version == version), None)
        row = self.runs_at(position).of(run_id) if position is not None else None
        return row.state if row is not None else None

    async def execute(self, session: StoreSession, statement: str, values: Any) -> Sequence[Any]:
        """Carry out a statement of a session; gives its rows."""
        if session.closed:
            raise LineLost
        rows: Sequence[Any] = ()
        if statement.startswith("SELECT CASE WHEN pg_try_advisory_lock("):
            rows = [(self._try(session),)]
            self._note_step(session, "try")
        elif statement.startswith("SELECT pg_advisory_lock("):
            self._note_step(session, "wait")
            await self._wait(session)
            self._note_step(session, "waited")
            rows = [("",)]
        elif statement.startswith("SELECT pg_advisory_unlock("):
            self._unlock(session)
            self._note_step(session, "give_up")
            rows = [(True,)]
        elif statement.startswith("SELECT position, recorded_at"):
            rows = [(*self.head(), LOG_FORMAT, None, self.now(), len(self.listeners))]
        elif statement.startswith("SELECT pg_notify("):
            self._notify(session, values[1])
            self._note_step(session, "tell")
        elif statement == "COMMIT":
            self._release_transcripts(session)
        else:
            assert statement.startswith(("SET ", "SELECT 1")), statement
        return rows

    def _note_step(self, session: StoreSession, step: str) -> None:
        session.step = step
        self.on_step(session)
        if session.closed:
            raise LineLost

    def _try(self, session: StoreSession) -> bool:
        if self._owner is None or Fault.NO_APPEND_LOCK in self.faults:
            self._owner = session
            return True
        assert self._owner is not session, "the lock is taken twice, and given up once"
        self._notify(session, GIVE_UP)
        return False

    async def _wait(self, session: StoreSession) -> None:
        if self._owner is None:
            self._owner = session
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((session, granted))
        await granted

    def _unlock(self, session: StoreSession) -> None:
        if self._owner is not session:
            return
        self._owner = None
        while self._waiting:
            following, granted = self._waiting.popleft()
            if not granted.done():
                self._owner = following
                granted.set_result(None)
                return

    def end(self, session: StoreSession) -> None:
        """End a session: pass the lock to a waiter, and roll back."""
        session.closed = True
        if session in self.writers:
            self.writers.remove(session)
        for waiting, granted in tuple(self._waiting):
            if waiting is session and not granted.done():
                self._waiting.remove((waiting, granted))
                granted.set_exception(LineLost())
        self._release_transcripts(session)
        self._unlock(session)

    def break_off(self, line: Line) -> None:
        """End the session of a line that is lost or has been silent too long."""
        for session in [writer for writer in self.writers if writer.line is line]:
            self.end(session)

    def is_owner(self, line: Line) -> bool:
        """Return True if the session of a line has the append lock."""
        return self._owner is not None and self._owner.line is line

    async def transcript_lock(self, run_id: UUID) -> None:
        while run_id in self._finishing:
            released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._writing.append(released)
            await released

    def finishes(self, session: StoreSession) -> bool:
        """Return True if a session keeps a transcript from growing."""
        return session in self._finishing.values()

    def _release_transcripts(self, session: StoreSession) -> None:
        for run_id in [key for key, owner in self._finishing.items() if owner is session]:
            del self._finishing[run_id]
        writing, self._writing = self._writing, []
        for released in writing:
            if not released.done():
                released.set_result(None)

    def head(self) -> Head:
        last = self.events[-1].envelope if self.events else None
        return Head(
            position=self.position,
            recorded_at=last.recorded_at if last and not self._is_time_unchecked else self.now(),
            chain_hash=last.chain_hash if last else bytes(32),
            config_version=self._config_version,
        )

    def require_true(self, question: ReadPlan) -> None:
        """Assert that the facts that a lock holder need not read are those on record."""
        for run_id, run in question.runs.items():
            assert run == self.runs.current[run_id].row.state, run_id
        for key, session in question.sessions.items():
            assert session == self.sessions.current[key].row.state, key
        for place, facts in question.lanes.items():
            running, waiting, _ = self._lane(place)
            assert facts.running == running, place
            assert facts.next == waiting[: len(facts.next)], place
            assert facts.may_have_more or len(facts.next) == len(waiting), place

    def answer(
        self, wanted: ReadRequest, remembered: StateCaches, session: StoreSession
    ) -> ReadResult:
        """Return the facts that the ledger does not know.

        A requested transcript gets no entries before the end of the transaction.
        """
        if session.closed:
            raise LineLost
        self._finishing.update(dict.fromkeys(wanted.transcripts, session))
        found = ReadResult(
            sessions=self._states(self.sessions, wanted.sessions, remembered.sessions),
            reserved={
                key: self.reserved[key].reserved
                for key in wanted.reservations
                if key in self.reserved
            },
            lanes={place: self._lane(place) for place in wanted.lanes},
            last_entries=self._last_entries(wanted.transcripts),
        )
        for query in wanted.trees:
            found.take_waiting(query, self._waiting_runs(query), wanted)
        found.runs = self._states(self.runs, wanted.runs, remembered.runs)
        return found

    def _last_entries(self, run_ids: Iterable[UUID]) -> dict[UUID, int]:
        if Fault.SEAL_UNCHECKED in self.faults:
            return dict.fromkeys(run_ids, _AnyNumber())
        return {run_id: max(self.entries.get(run_id, {}), default=0) for run_id in run_ids}

    @property
    def _is_time_unchecked(self) -> bool:
        return Fault.TIME_RUNS_BACK in self.faults

    def _states(
        self, rows: "Rows[Any, Any]", keys: Sequence[Any], memory: "StateCache[Any, Any]"
    ) -> dict[Any, Any]:
        """Return the recorded states; a cached state of the recorded version is reused."""
        known = memory.known(keys)
        found: dict[Any, Any] = {}
        for key in keys:
            span = rows.current.get(key)
            if span is None:
                continue
            mark = StateMark(span.row.version, span.from_position)
            is_known = key in known and known[key][0] == mark
            if is_known or (key in known and Fault.REMEMBERED_UNCHECKED in self.faults):
                found[key] = known[key][1]
            else:
                memory.store(key, span.row.state, span.from_position)
                found[key] = span.row.state
        return found

    def _waiting_runs(self, query: TreeQuery) -> list[Run]:
        rows = (row for row in self.runs.rows() if row.root == query.root)
        return [row.state for row in rows if row.due_kind in ("prepare", "wait")]

    def _lane(self, place: LaneKey) -> LaneFacts:
        members = [row for row in self.runs.rows() if (row.lane, row.lane_depth) == place]
        waiting = [
            member for member in members if member.holder is None and member.stage == "queued"
        ]
        waiting.sort(key=lambda run: run.queued_position or 0)
        running = sum(member.holder is not None for member in members)
        states = tuple(item.state for item in waiting)
        return first_in_line(LaneFacts(running, states), load.LANE_RUNS_MAX)

    def commit(self, session: StoreSession, batch: Batch) -> None:
        """Commit a whole batch, or nothing.

        Raises:
            LineLost: The session was ended.
        """
        if session.closed and Fault.ENDED_SESSION_STORES not in self.faults:
            raise LineLost
        assert self.faults or self._owner is session, "a batch is stored without the lock"
        begun = (row.envelope.stream for row in batch.events if row.envelope.version == 1)
        if any(session_key_of(stream) in self.sessions.current for stream in begun):
            raise psycopg.errors.UniqueViolation
        is_opened_first = Fault.OPENED_BEFORE_CLOSED in self.faults
        self.events.extend(batch.recorded)
        self.runs.take(batch.rows["runs"], is_opened_first=is_opened_first)
        self.sessions.take(batch.rows["sessions"], is_opened_first=is_opened_first)
        self._config_version += sum(row.envelope.stream == CONFIG_STREAM for row in batch.events)
        self._keep(batch)
        self._release_transcripts(session)
        if batch.events:
            self.commits.append(CommittedAppend(batch.recorded_at, batch.position))
        self._note_step(session, "store")

    def _keep(self, batch: Batch) -> None:
        self.contents.update((content.ref.id, content) for content in batch.contents)
        for key in batch.keys:
            self.content_keys.setdefault(key.session_id, key.key)
        for file in batch.staged:
            self.staged.setdefault(file.run_id, []).append(file)
        self._keep_transcripts(batch)
        for reservation, run_id, answer in batch.idempotency.inserts:
            reserved = Reserved(reservation.fingerprint, run_id, answer)
            name = reservation_key(reservation)
            self.reserved[name] = StoredReservation(reserved, batch.recorded_at)
        for name, stored in self.reserved.items():
            run_id, answer = stored.reserved.run_id, stored.reserved.answer
            late = batch.idempotency.answers.get(run_id) if run_id is not None else None
            if late is not None and answer is None:
                self.reserved[name] = stored._replace(
                    reserved=replace(stored.reserved, answer=late)
                )

    def _keep_transcripts(self, batch: Batch) -> None:
        for rows in batch.entries:
            values = zip(rows.instants, rows.kinds, rows.bodies, strict=True)
            self.entries.setdefault(rows.run_id, {}).update(
                (number, RecordedEntry(number, instant, kind, orjson.loads(body)))
                for number, (instant, kind, body) in enumerate(values, rows.first)
            )
        due_at = self.now() + timedelta(seconds=5)
        for run_id, is_archived in batch.due_files.items():
            self.due_files[run_id] = StoredDueFile(run_id, is_archived, due_at)

    def forget_last_commits(self, count: int) -> None:
        """Lose the last commits, as a database without durable commits does when it loses power."""
        self.commits = self.commits[: max(len(self.commits) - count, 0)]
        last = self.commits[-1].last_position if self.commits else 0
        self.events = self.events[:last]
        ends = {commit.last_position for commit in self.commits}
        fold = Fold((), ())
        for recorded in self.events:
            fold.apply(recorded.envelope.stream, recorded.event, recorded.envelope.stamp)
            if recorded.envelope.position in ends:
                fold.end_transaction()
        self.runs, self.sessions = Rows(), Rows()
        self.runs.take(fold.rows["runs"], is_opened_first=False)
        self.sessions.take(fold.rows["sessions"], is_opened_first=False)

    def has_recorded(self, batch: Batch) -> bool:
        """Return True if exactly this batch is in the log, by an id that only it has."""
        if Fault.COMMIT_FATE_UNKNOWN in self.faults:
            return False
        if batch.events:
            there = batch.position <= self.position
            return there and self.events[batch.position - 1].envelope.chain_hash == batch.chain_hash
        if batch.idempotency.inserts:
            reservation = batch.idempotency.inserts[0][0]
            stored = self.reserved.get(reservation_key(reservation))
            return stored is not None and (stored.reserved.fingerprint, stored.created_at) == (
                reservation.fingerprint,
                batch.recorded_at,
            )
        return False

    def _notify(self, session: StoreSession, payload: str) -> None:
        for listener in tuple(self.listeners):
            listener(session.number, payload)

    def run(self, run_id: UUID) -> Run | None:
        row = self.runs.now(run_id)
        return row.state if row is not None else None

    def session(self, key: str) -> Session | None:
        row = self.sessions.now(key)
        return row.state if row is not None else None

    def read(
        self,
        *,
        after: int,
        limit: int,
        types: Sequence[str] = (),
        run_id: UUID | None = None,
        correlations: Sequence[str] | None = None,
        actor: str | None = None,
        until: int | None = None,
        newest_first: bool = False,
    ) -> list[RecordedEvent]:
        """Return up to `limit` events after `after`, up to `until`."""
        found: list[RecordedEvent] = []
        events = self.events[after:until]
        for recorded in reversed(events) if newest_first else events:
            envelope = recorded.envelope
            if (
                (not types or envelope.type in types)
                and (run_id is None or envelope.provenance.run_id == run_id)
                and (correlations is None or envelope.provenance.correlation in correlations)
                and (actor is None or actor in envelope.provenance.actor)
            ):
                found.append(recorded)
                if len(found) == limit:
                    break
        return found
