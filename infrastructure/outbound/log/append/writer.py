"""Writer of the log, one per process: takes the queued submissions, decides them under the append
lock, and commits them once.

The writer keeps the lock across batches, and its ledger remembers everything read or stored in the
meantime, so most batches take one statement. It never lingers: while one batch commits, the next
one gathers. If the connection is lost during a commit, the outcome is unknown. The writer then
checks whether the last event of the batch is recorded before it answers any caller or decides
again.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from application.log.envelope import Provenance
from application.log.event_log import Appended, Decision, LogUnavailableError, Submission
from infrastructure.outbound.log.append.batch import Batch, SubmissionOutcome
from infrastructure.outbound.log.append.fault_point import LogFaultPoint, names_of
from infrastructure.outbound.log.append.ledger import Ledger
from infrastructure.outbound.log.append.load import ReadRequest, ReadResult, read, reservation_key
from infrastructure.outbound.log.append.store import is_in_transaction, notify, store
from infrastructure.outbound.log.append.tenure import IDLE_SECONDS_MAX, Tenure
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.database_clock import DatabaseClock
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.schema.connections import (
    WRITER_PLANNING,
    Connect,
    LogConnection,
    refusal_to_write,
)
from infrastructure.outbound.log.schema.format import UnknownFormatError


@dataclass(slots=True)
class QueuedSubmission:
    """A submission in the writer's queue. If its caller was cancelled, it is not answered."""

    submission: Submission[Any]
    future: asyncio.Future[Appended[Any]]

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def answer(self, outcome: SubmissionOutcome) -> None:
        """Answer the caller: the submission is decided and its events are durable."""
        if self.future.done():
            return
        if outcome.error is not None:
            self.future.set_exception(outcome.error)
            return
        assert outcome.appended is not None
        self.future.set_result(outcome.appended)


async def is_recorded(connection: LogConnection, batch: Batch) -> bool:
    """Return True if a batch whose confirmation was lost is in the log, judged by values that no
    other writer can have stored.

    Call it under the append lock, because the statement of the lost connection may still be
    running.
    """
    if batch.events:
        query = "SELECT 1 FROM events WHERE position = %s AND chain_hash = %s"
        values = [batch.position, batch.chain_hash]
    elif batch.idempotency.inserts:
        reservation = batch.idempotency.inserts[0][0]
        query = (
            "SELECT 1 FROM idempotency WHERE (token, method, path, key) = (%s, %s, %s, %s)"
            " AND fingerprint = %s AND created_at = %s"
        )
        name = reservation_key(reservation)
        values = [*name, reservation.fingerprint, batch.recorded_at]
    else:
        return False
    cursor = await connection.execute(query, values)
    return await cursor.fetchone() is not None


# These rows belong to no run. Rolled-back rows use disk space until the table is vacuumed.
_TAKE_ROOM = (
    "INSERT INTO transcript_entries (run_id, sequence, recorded_at, kind, body)"
    " SELECT '00000000-0000-0000-0000-000000000000', number, clock_timestamp(), 'probe',"
    " (SELECT string_agg(md5(random()::text || one), '') FROM generate_series(1, 250) AS one)"
    " FROM generate_series(1, 8) AS number"
)


async def require_writable(connection: LogConnection, *, room: bool) -> None:
    """Raise the error that an append would fail with.

    Args:
        connection: Outside any transaction.
        room: Also check for free disk space: write 64 KiB and roll back.

    Raises:
        ReadOnlySqlTransaction: The database accepts no writes.
        DiskFull: There is no room, checked only with `room`.
    """
    async with connection.transaction(force_rollback=True):
        cursor = await connection.execute("SHOW transaction_read_only")
        row = await cursor.fetchone()
        if row is None or row[0] != "off":
            raise psycopg.errors.ReadOnlySqlTransaction("the database accepts no writes")
        if room:
            await connection.execute(_TAKE_ROOM)


class _Outage(NamedTuple):
    """Reason why nothing can be recorded, and its start in seconds of the monotonic clock."""

    why: str
    since: float


T = TypeVar("T")
_UNREACHABLE = "the database is unavailable; retry in a moment"
BATCH_SUBMISSIONS_MAX = 64
BATCH_TEXT_BYTES_MAX = 32 * 1024 * 1024
"""A batch that has reached this size takes no more submissions; PostgreSQL accepts no message of a
gigabyte."""


QUEUE_SUBMISSIONS_MAX = 10_000
RECONNECT_SECONDS_MAX = 10.0
"""How long the writer tries to reconnect before it fails the waiting submissions. Later submissions
fail after one attempt, until an attempt succeeds."""


RECONNECT_PAUSE_SECONDS = 0.25
_log = logging.getLogger("spawnlog.log")


OnAppend = Callable[[Batch], None]


class LogWriter:
    """Writer that batches submissions into appends. It calls `on_append` after each commit with the
    batch: its events and the new states of its runs."""

    def __init__(
        self,
        connect: Connect,
        *,
        channel: str,
        new_id: Callable[[], UUID],
        on_append: OnAppend,
        fault_point: LogFaultPoint,
        remembered: StateCaches,
        clock: DatabaseClock,
    ) -> None:
        self._connect = connect
        self._channel = channel
        self._new_id = new_id
        self._on_append = on_append
        self._mapper = EventMapper()
        self._fault_point = fault_point
        self._remembered = remembered
        self._ledger = Ledger(remembered)
        self._clock = clock
        self.tenure = Tenure(channel)
        self._queue: deque[QueuedSubmission] = deque()
        self._gathered = asyncio.Event()
        self._committed = asyncio.Event()
        self._connection: LogConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._outage: _Outage | None = None
        # Time of the last decision, made under the lock, on the monotonic clock.
        self.decided_at = -math.inf
        self.on_unknown: Callable[[str], None] = lambda _: None

    async def start(self) -> None:
        """Connect and start writing."""
        self._connection = await self._opened()
        self._task = asyncio.create_task(self._write_on(), name="log writer")

    async def close(self) -> None:
        """Write the submissions in the queue, then stop."""
        self._closing = True
        self._gathered.set()
        if self._task is not None:
            await self._task
        if self._connection is not None:
            await self._connection.close()

    @property
    def failure(self) -> str | None:
        """Return the reason why the last attempt to record failed, or None if it succeeded."""
        return self._outage.why if self._outage is not None else None

    def forget_failure(self) -> None:
        """Clear the failure: another check showed that the log is writable."""
        self._note_success()

    @property
    def backend_pid(self) -> int | None:
        """Return the database's process id for the writer's connection. Its notifications carry
        this id."""
        return self._connection.info.backend_pid if self._connection is not None else None

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        """Queue a submission and wait until it is decided and durable.

        Raises:
            LogUnavailableError: The writer is stopping, the queue is full, or the database is
                unavailable.
        """
        if self._closing:
            raise LogUnavailableError("the server is stopping; retry in a moment")
        if len(self._queue) >= QUEUE_SUBMISSIONS_MAX:
            raise LogUnavailableError("the log is overloaded; retry in a moment")
        future: asyncio.Future[Appended[Any]] = asyncio.get_running_loop().create_future()
        self._queue.append(QueuedSubmission(submission, future))
        self._gathered.set()
        return await future

    async def probe(self) -> None:
        """Wait for a commit: of a queued batch, or of an empty submission.

        Raises:
            LogUnavailableError: Nothing can be recorded now.
        """
        empty = Submission(self._new_id(), (), lambda _: Decision(None), Provenance())
        submitted = asyncio.create_task(self.submit(empty))
        committed = asyncio.create_task(self._committed.wait())
        try:
            await asyncio.wait({submitted, committed}, return_when=asyncio.FIRST_COMPLETED)
            if submitted.done():
                submitted.result()
        finally:
            submitted.cancel()
            committed.cancel()

    async def _write_on(self) -> None:
        while True:
            if not self._queue:
                self._gathered.clear()
                if self._closing:
                    return
                await self._wait_for_work()
                continue
            # Not a linger: let tasks that are ready submit first, so that they share the commit.
            await asyncio.sleep(0)
            taken = [
                self._queue.popleft() for _ in range(min(len(self._queue), BATCH_SUBMISSIONS_MAX))
            ]
            try:
                await self._write(taken)
            except Exception as error:
                _log.exception("a batch of %d submissions failed", len(taken))
                await self._disconnect()
                for waiting in taken:
                    waiting.fail(error)
            if self.tenure.is_over:
                await self._give_up()

    async def _wait_for_work(self) -> None:
        """Wait for work. Release the lock if another process asks for it, or after
        `IDLE_SECONDS_MAX` without work."""
        if not self.tenure.is_held:
            await self._gathered.wait()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS_MAX):
                await self._gathered.wait()
        if not self._queue:
            await self._give_up()

    async def _give_up(self) -> None:
        if self._connection is None:
            return
        try:
            await self.tenure.give_up(self._connection)
        except psycopg.Error:
            await self._disconnect()

    def ask_for_lock(self) -> None:
        """Note that another process waits for the append lock."""
        self.tenure.ask()
        self._gathered.set()

    async def _write(self, taken: list[QueuedSubmission], *, is_retry: bool = False) -> None:
        try:
            await self._write_or_reconnect(taken, guess=not is_retry)
        except UnknownFormatError as unknown:
            self.on_unknown(str(unknown))
            raise
        except Exception as error:
            if is_retry:
                _log.error("a submission cannot be recorded: %s", _short_reason(error))
                taken[0].fail(error)
                return
            # Either one submission failed the batch, or a guess was wrong. Retry each one alone and
            # without guesses, so that a failure hurts only its own caller.
            for waiting in taken:
                await self._write([waiting], is_retry=True)

    async def _write_or_reconnect(self, taken: list[QueuedSubmission], *, guess: bool) -> None:
        batch: Batch | None = None
        outcomes: list[SubmissionOutcome] = []
        refused: Exception | None = None
        lost_at: float | None = None
        since = time.monotonic()
        if self._outage is not None and self._connection is None:
            # With a connection, a batch has been answered since: losing it now is a new outage.
            since = self._outage.since
        give_up_at = since + RECONNECT_SECONDS_MAX
        while True:
            try:
                connection = await self._connected()
                if batch is not None:
                    await self._hold(connection)
                    if await self._is_recorded(connection, batch):
                        # Do not add the batch to the ledger: it has taken the current head, and
                        # others may have written after the batch.
                        self._answer_callers(taken, outcomes, batch)
                        return await self._notify_followers(connection, batch)
                    batch = lost_at = None
                    if refused is None and time.monotonic() >= give_up_at:
                        return self._fail_unavailable([*taken, *self._drain_queue()], _UNREACHABLE)
                if refused is not None:
                    break
                batch, outcomes = await self._decide(connection, taken, guess=guess)
                self._put_back(taken, len(outcomes))
                await self._store(connection, batch)
                if batch.events:
                    self._ledger.keep(batch)
                self._answer_callers(taken, outcomes, batch)
                return await self._notify_followers(connection, batch)
            except Exception as error:
                if guess and self._is_refused_guess(error):
                    # Nothing was recorded. Decide all submissions again, from read facts.
                    guess, batch = False, None
                    continue
                is_away = self._is_away(error)
                # Disconnect after any error: the lock ends with the session, and so do the
                # assumptions of the ledger.
                await self._disconnect()
                refusal = refusal_to_write(error)
                if refusal is not None:
                    self._note_outage(refusal)
                    return self._fail_unavailable(taken, refusal)
                if not is_away:
                    refused = error
                    continue
                self._note_outage(f"the database is unavailable: {_short_reason(error)}")
                until = give_up_at
                if batch is not None:
                    # A lost confirmation starts its own period of this length, even if the outage
                    # began long before.
                    lost_at = lost_at or time.monotonic()
                    until = max(give_up_at, lost_at) + RECONNECT_SECONDS_MAX
                if time.monotonic() >= until:
                    return self._fail_unavailable([*taken, *self._drain_queue()], _UNREACHABLE)
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
        raise refused

    def _note_outage(self, why: str) -> None:
        if self._outage is None:
            self._outage = _Outage(why, time.monotonic())
            _log.warning("%s; nothing is recorded", why)
        elif self._outage.why != why:
            self._outage = _Outage(why, self._outage.since)

    def _note_success(self) -> None:
        if self._outage is not None:
            seconds = time.monotonic() - self._outage.since
            _log.warning("recording resumed after %.1f s", seconds)
            self._outage = None

    def _drain_queue(self) -> list[QueuedSubmission]:
        """Return all queued submissions: they have waited as long as the batch that is given up."""
        waiting = list(self._queue)
        self._queue.clear()
        return waiting

    def _fail_unavailable(self, waiting: Sequence[QueuedSubmission], why: str) -> None:
        for queued in waiting:
            queued.fail(LogUnavailableError(why))

    async def _store(self, connection: LogConnection, batch: Batch) -> None:
        if batch.is_empty:
            # An empty decision is true if the lock was held throughout, that is, if the session
            # still exists.
            await connection.execute("COMMIT" if is_in_transaction(connection) else "SELECT 1")
            return
        self._fault_point.pass_by("before", names_of(recorded.event for recorded in batch.events))
        await self._store_all(connection, batch)
        self._fault_point.pass_by("after", names_of(recorded.event for recorded in batch.events))

    async def _notify_followers(self, connection: LogConnection, batch: Batch) -> None:
        if batch.events and self.tenure.has_followers:
            try:
                await notify(connection, self._channel, batch.position)
            except psycopg.Error:
                # Followers poll as well.
                await self._disconnect()

    def _answer_callers(
        self, taken: list[QueuedSubmission], outcomes: list[SubmissionOutcome], batch: Batch
    ) -> None:
        # Wake only the probes that wait now, not later ones.
        self._committed.set()
        self._committed.clear()
        if not batch.is_empty:
            self._note_success()
        if batch.events:
            self._on_append(batch)
        for waiting, outcome in zip(taken, outcomes, strict=True):
            waiting.answer(outcome)

    def _is_refused_guess(self, error: Exception) -> bool:
        connection = self._connection
        is_refused = isinstance(error, psycopg.errors.UniqueViolation)
        return is_refused and connection is not None and not is_in_transaction(connection)

    def _is_away(self, error: Exception) -> bool:
        """Return True if another connection, or a later attempt, may succeed."""
        if self._connection is None or self._connection.closed:
            return isinstance(error, psycopg.Error)
        if isinstance(error, psycopg.errors.ProgramLimitExceeded):
            return False
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    async def _hold(self, connection: LogConnection) -> None:
        asked_at = time.monotonic()
        taken = await self.tenure.take(connection)
        if taken is not None:
            head, now = taken
            self._clock.note(now, asked_at=asked_at)
            self._ledger.take(head)

    async def _decide(
        self, connection: LogConnection, taken: list[QueuedSubmission], *, guess: bool
    ) -> tuple[Batch, list[SubmissionOutcome]]:
        await self._hold(connection)
        self.decided_at = time.monotonic()
        submissions = [waiting.submission for waiting in taken]
        question = self._ledger.ask(submissions, guess=guess)
        found = await self._read(connection, question.wanted)
        loaded = self._ledger.facts(question, found, self._clock.reckoned())
        batch = Batch(loaded, self._mapper, self._new_id)
        outcomes: list[SubmissionOutcome] = []
        for waiting in taken:
            outcomes.append(batch.decide(waiting.submission))
            if batch.text_bytes > BATCH_TEXT_BYTES_MAX:
                break
        if question.is_guess and not batch.fold.sessions.keys() >= question.unseen:
            # No unique key would reject a decision that missed the first event of an unseen
            # session.
            return await self._decide(connection, taken, guess=False)
        return batch, outcomes

    # The methods that query the database beyond the lock: the in-memory log of the tests overrides
    # them.

    async def _read(self, connection: LogConnection, wanted: ReadRequest) -> ReadResult:
        return await read(connection, wanted, self._remembered)

    async def _store_all(self, connection: LogConnection, batch: Batch) -> None:
        await store(connection, batch)

    async def _is_recorded(self, connection: LogConnection, batch: Batch) -> bool:
        return await is_recorded(connection, batch)

    def _put_back(self, taken: list[QueuedSubmission], decided: int) -> None:
        """Return the submissions that exceed the batch's text limit to the front of the queue."""
        self._queue.extendleft(reversed(taken[decided:]))
        del taken[decided:]

    async def _connected(self) -> LogConnection:
        if self._connection is not None and self._connection.is_doubtful:
            await self._disconnect()
        if self._connection is None or self._connection.closed:
            self._forget()
            self._connection = await self._opened()
        return self._connection

    async def _opened(self) -> LogConnection:
        connection = await self._connect()
        try:
            await connection.execute(WRITER_PLANNING)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                await self._connection.close()
            self._connection = None
            self._forget()

    def _forget(self) -> None:
        self._ledger.forget()
        self.tenure.forget()


def _short_reason(error: Exception) -> str:
    """Return the reason of a failure, without the row values in PostgreSQL's error details."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return f"{type(error).__name__}: {error.diag.message_primary}"
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
