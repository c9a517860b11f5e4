"""Tail of the log, one per process: follows the log by position and wakes waiting readers.

The writer of this process hands its committed events to the tail. Events of other processes are
announced by notification. The tail also polls, so a missed notification costs at most
`POLL_SECONDS`. Positions have no gaps, so the tail can prove that it missed nothing. If it ever
sees a gap, it stops with an error.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from application.concurrency.tasks import cancel_all
from application.log.envelope import RecordedEvent
from application.log.event_log import LogUnavailableError
from application.ports.run_bars import ReachedStage
from domain.run.state import Run
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.database_clock import DatabaseClock
from infrastructure.outbound.log.read.events import read_events
from infrastructure.outbound.log.read.followed_runs import FollowedRuns
from infrastructure.outbound.log.read.followed_stages import FollowedStages
from infrastructure.outbound.log.read.recent_events import RecentEvents
from infrastructure.outbound.log.schema.connections import (
    UNAVAILABLE,
    Connect,
    LogConnection,
)
from infrastructure.outbound.log.schema.followers import GIVE_UP, listen_statement


class LogRewoundError(Exception):
    """The log is shorter than before, or another log: facts read from it earlier are no longer
    true."""


HEAD_AND_HASH = (
    "SELECT (SELECT position FROM log_head), (SELECT chain_hash FROM events WHERE position = %s),"
    " clock_timestamp()"
)


async def require_same_log(
    connection: LogConnection, position: int, newest: bytes | None
) -> datetime:
    """Require that the log was neither restored to an older state nor replaced.

    Args:
        connection: Outside any transaction.
        position: The last position seen.
        newest: The chain hash at that position, if it is known.

    Returns:
        The time of the database.

    Raises:
        LogRewoundError: The log was restored or replaced.
    """
    cursor = await connection.execute(HEAD_AND_HASH, [position])
    row = await cursor.fetchone()
    assert row is not None
    if row[0] < position:
        raise LogRewoundError(
            f"the log ends at {row[0]}, but had reached position {position} before"
        )
    if newest is not None and row[1] is not None and bytes(row[1]) != newest:
        raise LogRewoundError(f"event {position} differs from the event read before")
    now: datetime = row[2]
    return now


POLL_SECONDS = 1.0
PAGE_EVENTS = 500
LISTEN_SECONDS = 10.0
RECONNECT_PAUSE_SECONDS = 0.25
_log = logging.getLogger("spawnlog.tail")


class LogEnd(NamedTuple):
    """Proof that the log did not extend beyond `position` at `known_at`, in seconds of the
    monotonic clock."""

    position: int
    known_at: float


class LogGapError(Exception):
    """A position is missing: the log is damaged, and no answer may be based on it."""


class LogTail:
    """Follower of the log, from the head at its start."""

    def __init__(self, connect: Connect, *, channel: str) -> None:
        self._connect = connect
        self._channel = channel
        self._mapper = EventMapper()
        self._position = 0
        self.clock = DatabaseClock()
        self._checked_at = -math.inf
        self._end = LogEnd(0, -math.inf)
        self._recent = RecentEvents()
        self._followed = FollowedRuns()
        self._stages = FollowedStages()
        self._hint = asyncio.Event()
        self._connection: LogConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None
        self.on_failure: Callable[[str], None] = lambda _: None
        self.own_writer: Callable[[], int | None] = lambda: None
        self.on_give_up: Callable[[], None] = lambda: None

    @property
    def position(self) -> int:
        """Return the last position seen."""
        return self._position

    async def start(self) -> None:
        """Start following at the current head."""
        self._connection = await self._connect()
        asked_at = time.monotonic()
        try:
            head = await self._connection.execute(
                "SELECT position, clock_timestamp() FROM log_head"
            )
            row = await head.fetchone()
        except BaseException:
            await self._disconnect()
            raise
        assert row is not None
        self._position = row[0]
        self.clock.note(row[1], asked_at=asked_at)
        self._task = asyncio.create_task(self._follow_on(), name="log tail")
        self._listener = asyncio.create_task(self._listen_on(), name="log listener")

    async def close(self) -> None:
        """Stop following. A failure of the tail is not raised here."""
        tasks = [task for task in (self._task, self._listener) if task is not None]
        await cancel_all(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task cancelled while connecting keeps a connection alive in its traceback, and a task
        # cancelled before its first step has not run its `finally`.
        self._task = self._listener = None
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def recorded_at(self, position: int) -> datetime | None:
        """Return the time when the event at a position was recorded, or None if it is not cached
        here."""
        return self._recent.recorded_at(position) if self.failure is None else None

    def newest(self, run_id: UUID) -> Run | None:
        """Return the run as of `position`, or None if it is not cached here."""
        return self._followed.get(run_id) if self.failure is None else None

    def stages(self, run_id: UUID, until: int) -> Sequence[ReachedStage] | None:
        """Return the stages that a run reached within its first `until` events, or None if they are
        not cached here."""
        return self._stages.stages(run_id, until) if self.failure is None else None

    def is_respawned(self, run_id: UUID, at: int) -> bool | None:
        """Return True if another run was respawned from this one, possibly after position `at`;
        None if that is not known here."""
        if self.failure is not None or self._position < at:
            return None
        return self._stages.is_respawned(run_id)

    def end_since(self, moment: float) -> int | None:
        """Return a position, seen here, that was the end of the log at `moment` of the monotonic
        clock or later. Return None if the database must be asked."""
        is_known = self._end.known_at >= moment and self.failure is None
        return self._end.position if is_known else None

    def take(
        self,
        events: Sequence[RecordedEvent],
        runs: Mapping[UUID, Run],
        *,
        locked_at: float = -math.inf,
    ) -> None:
        """Accept events committed by the writer of this process, and the runs as of these events.

        Events that directly follow the last seen position are not read again. Otherwise events of
        another process precede them, and the tail reads the log.

        Args:
            events: Committed events in order of position.
            runs: The new states of the runs that they changed.
            locked_at: A moment of the monotonic clock at which the writer held the lock, so no
                other process had written after these events.
        """
        fresh = [event for event in events if event.envelope.position > self._position]
        if not fresh or self.failure is not None:
            return
        if fresh[0].envelope.position == self._position + 1:
            self._followed.take(runs)
            self._note(fresh)
            self._note_end(locked_at)
        else:
            self._hint.set()

    async def changed(
        self,
        run_ids: Collection[UUID],
        *,
        after: int,
        timeout_seconds: float,
        types: Collection[str] = (),
        stopped: asyncio.Future[None] | None = None,
    ) -> bool:
        """Wait for an event after `after` that is about one of the runs and has one of the types.
        An empty collection matches all.

        Returns:
            False on timeout or as soon as `stopped` is done, otherwise True.

        Raises:
            LogUnavailableError: The tail has failed.
        """
        self._require_following()
        if not run_ids and not types:
            return await self._grown_beyond(after, timeout_seconds, stopped)
        with self._recent.waiting(run_ids, types, stopped) as woken:
            try:
                async with asyncio.timeout(timeout_seconds):
                    if self._recent.has(run_ids, after, types):
                        return True
                    if await self._had_event_of(run_ids, after, types):
                        return True
                    await woken
                    self._require_following()
            except TimeoutError:
                return False
        return stopped is None or not stopped.done()

    def _require_following(self) -> None:
        if self.failure is not None:
            raise LogUnavailableError("the log can no longer be followed; see the server's log")

    async def _had_event_of(
        self, run_ids: Collection[UUID], after: int, types: Collection[str]
    ) -> bool:
        """Return True if the log has such an event before the cached ones."""
        first = self._recent.first_position or self._position + 1
        if after >= first - 1:
            return False
        for run_id in run_ids or (None,):
            if await self._read(after, limit=1, run_id=run_id, types=tuple(types)):
                return True
        return False

    async def _grown_beyond(
        self,
        after: int,
        timeout_seconds: float,
        stopped: asyncio.Future[None] | None = None,
    ) -> bool:
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._position <= after:
                    with self._recent.waiting(stopped=stopped) as woken:
                        await woken
                    self._require_following()
                    if stopped is not None and stopped.done():
                        return False
        except TimeoutError:
            return False
        return True

    async def follow(self, *, after: int) -> AsyncIterator[Sequence[RecordedEvent]]:
        """Yield every event after `after`, in batches: from memory while the events are cached,
        otherwise from the log."""
        position = after
        while True:
            self._require_following()
            if position >= self._position:
                await self._grown_beyond(position, timeout_seconds=3600)
                continue
            events = self._recent.after(position) or await self._read(position, limit=PAGE_EVENTS)
            if events:
                yield events
                position = events[-1].envelope.position

    async def _read(
        self,
        after: int,
        *,
        limit: int,
        run_id: UUID | None = None,
        types: Sequence[str] = (),
    ) -> list[RecordedEvent]:
        """Return events up to the last seen position from the log. If the database is unavailable,
        wait for it."""
        until = self._position
        while True:
            try:
                async with await self._connect() as connection:
                    return await read_events(
                        connection,
                        self._mapper,
                        after=after,
                        limit=limit,
                        until=until,
                        run_id=run_id,
                        types=types,
                    )
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)

    async def _follow_on(self) -> None:
        while True:
            try:
                if self._connection is not None and self._connection.is_doubtful:
                    await self._disconnect()
                self._connection = self._connection or await self._connect()
                await self._catch_up(self._connection)
                await self._check(self._connection)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._hint.wait()
                self._hint.clear()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await self._disconnect()
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            except Exception as error:
                self.failure = error
                _log.exception("the tail stops: it cannot read the log")
                self._recent.wake_all()
                self.on_failure(f"the log cannot be followed: {error}")
                return

    async def _check(self, connection: LogConnection) -> None:
        """Verify at intervals that it is still the same log, and adjust the clock."""
        asked_at = time.monotonic()
        if asked_at - self._checked_at < POLL_SECONDS / 2:
            return
        now = await require_same_log(connection, self._position, self._recent.newest)
        self.clock.note(now, asked_at=asked_at)
        self._checked_at = time.monotonic()

    async def _catch_up(self, connection: LogConnection) -> None:
        while True:
            asked_at = time.monotonic()
            events = await read_events(
                connection, self._mapper, after=self._position, limit=PAGE_EVENTS
            )
            self._take_read(events)
            if len(events) < PAGE_EVENTS:
                self._note_end(asked_at)
                return

    def _note_end(self, known_at: float) -> None:
        if known_at > self._end.known_at:
            self._end = LogEnd(self._position, known_at)

    def _take_read(self, events: Sequence[RecordedEvent]) -> None:
        # The writer may have handed over some of them while the query ran.
        fresh = [recorded for recorded in events if recorded.envelope.position > self._position]
        for recorded in fresh:
            self._followed.apply(recorded)
        self._note(fresh)

    def _note(self, events: Sequence[RecordedEvent]) -> None:
        """Add new events in order and wake their waiters."""
        next_position = self._position + 1
        for event in events:
            if event.envelope.position != next_position:
                break
            next_position += 1
        taken = events[: next_position - self._position - 1]
        if taken:
            self._position = next_position - 1
            self.clock.note_recorded(taken[-1].envelope.recorded_at)
            self._stages.add(taken)
            self._recent.add(taken)
        if len(taken) < len(events):
            raise LogGapError(f"position {next_position} is missing from the log")

    async def _listen_on(self) -> None:
        while True:
            connection: LogConnection | None = None
            try:
                connection = await self._connect()
                await connection.execute(listen_statement(self._channel), prepare=False)
                self._hint.set()
                while True:
                    async for notification in connection.notifies(timeout=LISTEN_SECONDS):
                        # The writer of this process hands over its own commits.
                        if notification.pid == self.own_writer():
                            continue
                        if notification.payload == GIVE_UP:
                            self.on_give_up()
                        else:
                            self._hint.set()
                    # A lost database sends no notifications either, so probe the connection.
                    await connection.execute("SELECT 1")
            except UNAVAILABLE:
                # A standby also refuses listeners until it is promoted.
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            finally:
                if connection is not None:
                    await connection.close()
