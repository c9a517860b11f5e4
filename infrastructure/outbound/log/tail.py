"""The tail: one a process. It follows the log by position and wakes whoever waits.

It hears of new events from the writer of its own process, from the notifications of others, and
asks by itself now and then, so that a missed notification costs at most `POLL_SECONDS`. Positions
have no gaps, so it can tell that it missed nothing; if it ever sees one, it stops loudly.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from uuid import UUID

import psycopg

from application.envelope import RecordedEvent
from infrastructure.outbound.log.connections import Connect, Connection
from infrastructure.outbound.log.mapper import EventMapper
from infrastructure.outbound.log.reading import read_events

POLL_SECONDS = 1.0
PAGE_EVENTS = 500
KEPT_EVENTS_MAX = 5_000
RECONNECT_PAUSE_SECONDS = 0.25

_log = logging.getLogger("spawnlog.tail")


class LogHasGap(Exception):
    """A position is missing: the log was damaged, and nothing may be told from it."""


class LogTail:
    """Follows the log from its head at the start."""

    def __init__(
        self, connect: Connect, *, channel: str, mapper: EventMapper | None = None
    ) -> None:
        self._connect = connect
        self._channel = channel
        self._mapper = mapper or EventMapper()
        self._position = 0
        self._recent: deque[RecordedEvent] = deque(maxlen=KEPT_EVENTS_MAX)
        self._grown = asyncio.Event()
        self._hint = asyncio.Event()
        self._by_run: dict[UUID, set[asyncio.Event]] = {}
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None

    @property
    def position(self) -> int:
        """The last position seen."""
        return self._position

    async def start(self) -> None:
        """Begin at the present head."""
        self._connection = await self._connect()
        try:
            head = await self._connection.execute("SELECT position FROM log_head")
            row = await head.fetchone()
        except BaseException:
            await self._disconnect()
            raise
        assert row is not None
        self._position = row[0]
        self._task = asyncio.create_task(self._follow_on(), name="log tail")
        self._listener = asyncio.create_task(self._listen_on(), name="log listener")

    async def close(self) -> None:
        """Stop following. A tail that has failed before ends as quietly as any other."""
        tasks = [task for task in (self._task, self._listener) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A task that was cancelled while it connected keeps a connection alive in its traceback,
        # and one that was cancelled before its first step has run no `finally`.
        self._task = self._listener = None
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def hint(self, position: int) -> None:
        """The log has grown to `position`, says the writer of this process."""
        if position > self._position:
            self._hint.set()

    async def changed(self, run_id: UUID | None, *, after: int, timeout_seconds: float) -> bool:
        """Wait for an event behind `after` (of that run, if one is given); False on timeout."""
        if run_id is None:
            return await self._grown_beyond(after, timeout_seconds)
        event = asyncio.Event()
        waiters = self._by_run.setdefault(run_id, set())
        waiters.add(event)
        try:
            async with asyncio.timeout(timeout_seconds):
                if self._has_event_of(run_id, after) or await self._had_event_of(run_id, after):
                    return True
                await event.wait()
        except TimeoutError:
            return False
        finally:
            waiters.discard(event)
            if not waiters:
                self._by_run.pop(run_id, None)
        return True

    def _has_event_of(self, run_id: UUID, after: int) -> bool:
        for recorded in reversed(self._recent):
            if recorded.envelope.position <= after:
                return False
            if recorded.envelope.provenance.run_id == run_id:
                return True
        return False

    async def _had_event_of(self, run_id: UUID, after: int) -> bool:
        """Whether the log has such an event from before those that are kept."""
        kept_from = self._recent[0].envelope.position if self._recent else self._position + 1
        return after < kept_from - 1 and bool(await self._read(after, limit=1, run_id=run_id))

    async def _grown_beyond(self, after: int, timeout_seconds: float) -> bool:
        try:
            async with asyncio.timeout(timeout_seconds):
                while self._position <= after:
                    await self._next_growth()
        except TimeoutError:
            return False
        return True

    async def _next_growth(self) -> None:
        grown = self._grown
        await grown.wait()

    async def follow(self, *, after: int) -> AsyncIterator[RecordedEvent]:
        """Every event behind `after`, from memory where it is still there, else from the log."""
        position = after
        while True:
            if position >= self._position:
                await self._grown_beyond(position, timeout_seconds=3600)
                continue
            kept = self._kept_behind(position) or await self._read(position, limit=PAGE_EVENTS)
            for event in kept:
                yield event
            position = kept[-1].envelope.position if kept else position

    def _kept_behind(self, position: int) -> list[RecordedEvent]:
        """Positions have no gaps, so the place of one in memory can be told from the first."""
        start = position + 1 - self._recent[0].envelope.position if self._recent else -1
        return list(islice(self._recent, start, None)) if start >= 0 else []

    async def _read(
        self, after: int, *, limit: int, run_id: UUID | None = None
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
                    )
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)

    async def _follow_on(self) -> None:
        while True:
            try:
                self._connection = self._connection or await self._connect()
                await self._catch_up(self._connection)
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
                return

    async def _catch_up(self, connection: Connection) -> None:
        while True:
            events = await read_events(
                connection, self._mapper, after=self._position, limit=PAGE_EVENTS
            )
            for event in events:
                if event.envelope.position != self._position + 1:
                    raise LogHasGap(f"position {self._position + 1} is missing from the log")
                self._position = event.envelope.position
                self._recent.append(event)
                run_id = event.envelope.provenance.run_id
                if run_id is not None:
                    for waiter in self._by_run.get(run_id, ()):
                        waiter.set()
            if events:
                grown, self._grown = self._grown, asyncio.Event()
                grown.set()
            if len(events) < PAGE_EVENTS:
                return

    async def _listen_on(self) -> None:
        while True:
            connection: Connection | None = None
            try:
                connection = await self._connect()
                await connection.execute(f'LISTEN "{self._channel}"')
                self._hint.set()
                async for _ in connection.notifies():
                    self._hint.set()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            finally:
                if connection is not None:
                    await connection.close()
