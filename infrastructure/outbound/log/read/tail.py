"""The tail: one a process. It follows the log by position and wakes whoever waits.

The writer of its own process hands it what was committed; of what others write it hears by
notification, and it asks by itself now and then, so that a missed one costs at most `POLL_SECONDS`.
Positions have no gaps, so it can tell that it missed nothing; if it ever sees one, it stops loudly.
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
from application.log.event_log import LogUnavailable
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


class LogWentBack(Exception):
    """The log is shorter than it was, or another one: what was told of it is not so any more."""


HEAD_AND_HASH = (
    "SELECT (SELECT position FROM log_head), (SELECT chain_hash FROM events WHERE position = %s),"
    " clock_timestamp()"
)


async def require_same_log(
    connection: LogConnection, position: int, newest: bytes | None
) -> datetime:
    """Require that the log was not put back to an older state, nor is another one.

    Args:
        connection: Outside any transaction.
        position: The last position that was seen.
        newest: The chain's hash there, if it is known.

    Returns:
        The time of the database.

    Raises:
        LogWentBack: It was, or is.
    """
    cursor = await connection.execute(HEAD_AND_HASH, [position])
    row = await cursor.fetchone()
    assert row is not None
    if row[0] < position:
        raise LogWentBack(f"the log ends at {row[0]}, and has gone to {position} before")
    if newest is not None and row[1] is not None and bytes(row[1]) != newest:
        raise LogWentBack(f"event {position} is another one than before")
    now: datetime = row[2]
    return now


POLL_SECONDS = 1.0
PAGE_EVENTS = 500
LISTEN_SECONDS = 10.0
RECONNECT_PAUSE_SECONDS = 0.25
_log = logging.getLogger("spawnlog.tail")


class LogEnd(NamedTuple):
    """A position that the log did not go beyond at a moment of the monotonic clock."""

    position: int
    known_at: float


class LogHasGap(Exception):
    """A position is missing: the log was damaged, and nothing may be told from it."""


class LogTail:
    """Follows the log from its head at the start."""

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
        """The last position seen."""
        return self._position

    async def start(self) -> None:
        """Begin at the present head."""
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
        """Stop following. A tail that has failed before ends as quietly as any other."""
        tasks = [task for task in (self._task, self._listener) if task is not None]
        await cancel_all(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task that was cancelled while it connected keeps a connection alive in its traceback,
        # and one that was cancelled before its first step has run no `finally`.
        self._task = self._listener = None
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def recorded_at(self, position: int) -> datetime | None:
        """When the event at a position was recorded; None when it is not known here."""
        return self._recent.recorded_at(position) if self.failure is None else None

    def newest(self, run_id: UUID) -> Run | None:
        """The run as it is at `position`; None when it is not known here."""
        return self._followed.get(run_id) if self.failure is None else None

    def stages(self, run_id: UUID, until: int) -> Sequence[ReachedStage] | None:
        """The stages of a run after so many of its events; None when they are not known here."""
        return self._stages.stages(run_id, until) if self.failure is None else None

    def is_respawned(self, run_id: UUID, at: int) -> bool | None:
        """Whether another run was made from this one, up to a position or behind it; None when that
        is not known here."""
        if self.failure is not None or self._position < at:
            return None
        return self._stages.is_respawned(run_id)

    def end_since(self, moment: float) -> int | None:
        """Return a position seen here that was the end of the log at `moment` of the monotonic
        clock, or later; None if the database has to be asked."""
        is_known = self._end.known_at >= moment and self.failure is None
        return self._end.position if is_known else None

    def take(
        self,
        events: Sequence[RecordedEvent],
        runs: Mapping[UUID, Run],
        *,
        locked_at: float = -math.inf,
    ) -> None:
        """Events that the writer of this process has committed, and the runs as they are after
        them. Those that join on to what was seen need not be read again; before others there is
        something of another process. The writer held the lock at `locked_at`, so that no other
        process had written behind them then."""
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
        """Wait for an event behind `after`, of one of the runs and of one of the types, if any are
        given. Return False on timeout, or as soon as `stopped` is done."""
        self._must_go_on()
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
                    self._must_go_on()
            except TimeoutError:
                return False
        return stopped is None or not stopped.done()

    def _must_go_on(self) -> None:
        if self.failure is not None:
            raise LogUnavailable("the log cannot be followed any more; see the server's log")

    async def _had_event_of(
        self, run_ids: Collection[UUID], after: int, types: Collection[str]
    ) -> bool:
        """Whether the log has such an event from before those that are kept."""
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
                    self._must_go_on()
                    if stopped is not None and stopped.done():
                        return False
        except TimeoutError:
            return False
        return True

    async def follow(self, *, after: int) -> AsyncIterator[Sequence[RecordedEvent]]:
        """Yield every event behind `after`, those that are there together: from memory where they
        are still there, else from the log."""
        position = after
        while True:
            self._must_go_on()
            if position >= self._position:
                await self._grown_beyond(position, timeout_seconds=3600)
                continue
            events = self._recent.behind(position) or await self._read(position, limit=PAGE_EVENTS)
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
        """Events that were seen before, from the log; it waits for a database that is away."""
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
        """Ask whether it is the same log still, and what time it is there, now and then."""
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
        # Some may have been handed over while the question was under way.
        fresh = [one for one in events if one.envelope.position > self._position]
        for recorded in fresh:
            self._followed.apply(recorded)
        self._note(fresh)

    def _note(self, events: Sequence[RecordedEvent]) -> None:
        """Take new events in, in order, and wake those who wait for them."""
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
            raise LogHasGap(f"position {next_position} is missing from the log")

    async def _listen_on(self) -> None:
        while True:
            connection: LogConnection | None = None
            try:
                connection = await self._connect()
                await connection.execute(listen_statement(self._channel), prepare=False)
                self._hint.set()
                while True:
                    async for notification in connection.notifies(timeout=LISTEN_SECONDS):
                        # What the writer of this process has committed it hands over itself.
                        if notification.pid == self.own_writer():
                            continue
                        if notification.payload == GIVE_UP:
                            self.on_give_up()
                        else:
                            self._hint.set()
                    # A database that is gone tells nothing either.
                    await connection.execute("SELECT 1")
            except UNAVAILABLE:
                # Also of a standby, which takes no listeners until it is promoted.
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            finally:
                if connection is not None:
                    await connection.close()
