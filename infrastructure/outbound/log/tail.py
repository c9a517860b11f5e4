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
        self._task: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        self.failure: BaseException | None = None

    @property
    def position(self) -> int:
        """The last position seen."""
        return self._position

    async def start(self) -> None:
        """Begin at the present head."""
        connection = await self._connect()
        row = await (await connection.execute("SELECT position FROM log_head")).fetchone()
        assert row is not None
        self._position = row[0]
        self._task = asyncio.create_task(self._follow_on(connection), name="log tail")
        self._listener = asyncio.create_task(self._listen_on(), name="log listener")

    async def close(self) -> None:
        """Stop following."""
        for task in (self._task, self._listener):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

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
            if self._has_event_of(run_id, after):
                return True
            async with asyncio.timeout(timeout_seconds):
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
            kept = [one for one in self._recent if one.envelope.position > position]
            if not kept or kept[0].envelope.position != position + 1:
                kept = await self._page(position)
            for event in kept:
                yield event
            position = kept[-1].envelope.position if kept else position

    async def _page(self, after: int) -> list[RecordedEvent]:
        connection = await self._connect()
        try:
            return await read_events(
                connection, self._mapper, after=after, limit=PAGE_EVENTS, until=self._position
            )
        finally:
            await connection.close()

    async def _follow_on(self, connection: Connection) -> None:
        current: Connection | None = connection
        while True:
            try:
                current = current or await self._connect()
                await self._catch_up(current)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._hint.wait()
                self._hint.clear()
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if current is not None:
                    with contextlib.suppress(psycopg.Error):
                        await current.close()
                current = None
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            except asyncio.CancelledError:
                if current is not None:
                    await current.close()
                raise
            except Exception as error:
                self.failure = error
                _log.exception("the tail stops: it cannot read the log")
                raise

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
                    with contextlib.suppress(psycopg.Error):
                        await connection.close()
