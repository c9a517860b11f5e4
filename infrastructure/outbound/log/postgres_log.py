"""The log of one database schema: writer, readers and tail."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from application.log.envelope import RecordedEvent
from application.log.event_log import Appended, LogUnavailableError, Submission
from application.telemetry.totals import LogTotals
from infrastructure.outbound.log.append.batch import Batch
from infrastructure.outbound.log.append.fault_point import LogFaultPoint
from infrastructure.outbound.log.append.writer import LogWriter, require_writable
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.coalesced_reads import CoalescedReads
from infrastructure.outbound.log.read.events import (
    events_of_streams,
    first_events,
    head_of,
    instants_of,
    newest_of_stream,
    queued_message,
    read_events,
    read_stream_events,
    versions_at,
)
from infrastructure.outbound.log.read.recent_texts import RecentTexts
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.read.tail import LogTail
from infrastructure.outbound.log.schema.connections import Connect, LogConnection, borrow_connection
from infrastructure.outbound.log.schema.followers import channel_of
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from infrastructure.outbound.log.schema.projection_versions import check_known_rows

PROBE_SECONDS = 1.0
T = TypeVar("T")


class PostgresLog:
    """Event log in PostgreSQL; implements `EventLog`.

    `connect` opens connections for the writer and the tail; `pool` serves reads.
    """

    def __init__(
        self,
        connect: Connect,
        pool: AsyncConnectionPool[LogConnection],
        *,
        log_id: UUID,
        schema: str,
        new_id: Callable[[], UUID],
        fault_point: LogFaultPoint | None = None,
    ) -> None:
        channel = channel_of(schema)
        self._log_id = log_id
        self._new_id = new_id
        self._pool = pool
        self._mapper = EventMapper()
        self.remembered = StateCaches()
        self._heads = CoalescedReads(pool, head_of)
        self._firsts = CoalescedReads(pool, partial(first_events, self._mapper))
        self._instants = CoalescedReads(pool, instants_of)
        self._versions = CoalescedReads(pool, versions_at)
        self._of_streams = CoalescedReads(pool, partial(events_of_streams, self._mapper))
        self.tail = LogTail(connect, channel=channel)
        self.texts = RecentTexts()
        self.totals = LogTotals()
        self.on_commit: Callable[[Sequence[RecordedEvent]], None] = lambda _: None
        self._writer = LogWriter(
            connect,
            channel=channel,
            new_id=new_id,
            on_append=self._take,
            fault_point=fault_point or LogFaultPoint(),
            remembered=self.remembered,
            clock=self.tail.clock,
        )
        self.tail.on_give_up = self._writer.ask_for_lock
        self.tail.own_writer = lambda: self._writer.backend_pid
        self._next_probe = 0.0
        self._probe: asyncio.Task[LogUnavailableError | None] | None = None

    @property
    def log_id(self) -> UUID:
        return self._log_id

    def end_with(self, end: Callable[[str], None]) -> None:
        """Set the callback for when this process can no longer work on the log. It receives the
        reason."""
        self.tail.on_failure = end
        self._writer.on_unknown = end

    async def start(self) -> None:
        """Start the tail and the writer."""
        await self.tail.start()
        try:
            await self._writer.start()
        except BaseException:
            await self.tail.close()
            raise

    async def close(self) -> None:
        """Write the submissions in the queue, then stop."""
        await self._writer.close()
        await self.tail.close()

    def _take(self, batch: Batch) -> None:
        events, runs = batch.recorded, batch.changed_runs
        self.texts.take(batch.contents)
        self.tail.take(events, runs, locked_at=self._writer.decided_at)
        self.totals.take(events, runs)
        self.on_commit(events)

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        """Decide and record a submission.

        Raises:
            LogUnavailableError: Nothing can be recorded now.
        """
        began = time.monotonic()
        appended = await self._writer.submit(submission)
        self.totals.append_seconds.add(time.monotonic() - began)
        return appended

    async def head(self) -> int:
        """Return the last position."""
        ends = self.remembered.ends
        head = await self._heads.get(None)
        assert head is not None
        ends.note(head.position, head.recorded_at if head.position else None)
        return head.position

    def now(self) -> datetime:
        """Return the time of the database."""
        return self.tail.clock.now()

    def known_instant(self, position: int) -> datetime | None:
        """Return the time when a position was recorded if it is cached, otherwise None."""
        return self.remembered.moments.recorded_at(position) or self.tail.recorded_at(position)

    async def recorded_at(self, position: int) -> datetime | None:
        """Return the time when the event at a position was recorded."""
        known = self.known_instant(position)
        if known is not None or position <= 0:
            return known
        return await self._instants.get(position)

    async def known_head(self) -> int:
        """Return the last position, after checking the format and rows of the log.

        Raises:
            UnknownFormatError: This program does not know the log's format or the version of its
                rows.
        """
        async with borrow_connection(self._pool) as connection:
            require_known_format(await format_of(connection))
            await check_known_rows(connection)
        return await self.head()

    async def require_answering_writer(self) -> None:
        """Wait until the writer has committed a batch. Concurrent callers share one probe.

        Raises:
            LogUnavailableError: Nothing can be recorded now.
        """
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._probe_writer())
        failure = await asyncio.shield(self._probe)
        if failure is not None:
            raise failure

    async def _probe_writer(self) -> LogUnavailableError | None:
        try:
            await self._writer.probe()
        except LogUnavailableError as why:
            return why
        return None

    async def require_writable(self) -> None:
        """Require that events can be recorded now. If the last attempt failed, make a trial write,
        at most once a second.

        Raises:
            LogUnavailableError: Nothing can be recorded now.
        """
        failure = self._writer.failure
        if failure is not None and time.monotonic() < self._next_probe:
            # Each trial write uses disk space until the table is vacuumed.
            raise LogUnavailableError(failure)
        if failure is not None:
            self._next_probe = time.monotonic() + PROBE_SECONDS
        async with borrow_connection(self._pool) as connection:
            await require_writable(connection, room=failure is not None)
        if failure is not None:
            self._writer.forget_failure()

    async def read(
        self,
        *,
        after: int = 0,
        limit: int,
        types: Sequence[str] = (),
        run_id: UUID | None = None,
        correlations: Sequence[str] | None = None,
        actor: str | None = None,
        until: int | None = None,
        newest_first: bool = False,
    ) -> Sequence[RecordedEvent]:
        """Return events in order of position, or in descending order with `newest_first`."""
        async with borrow_connection(self._pool) as connection:
            return await read_events(
                connection,
                self._mapper,
                after=after,
                limit=limit,
                until=until,
                types=types,
                run_id=run_id,
                correlations=correlations,
                actor=actor,
                newest_first=newest_first,
            )

    async def first(self, event_type: str, run_id: UUID) -> RecordedEvent | None:
        """Return the first event of a type in a run's stream, or None."""
        return await self._firsts.get((run_id, event_type))

    async def queued_message(self, run_id: UUID) -> RecordedEvent | None:
        """Return the event that queued the message from which this run will be made, or None."""
        async with borrow_connection(self._pool) as connection:
            return await queued_message(connection, self._mapper, run_id)

    async def read_streams(
        self, streams: Sequence[str], *, types: Sequence[str] = (), until: int
    ) -> Sequence[RecordedEvent]:
        """Return all events of these streams up to and including position `until`."""
        async with borrow_connection(self._pool) as connection:
            return await read_stream_events(
                connection, self._mapper, streams, types=types, until=until
            )

    async def version_of(self, stream: str, *, at: int) -> int:
        """Return the number of events in a stream up to a position."""
        return await self._versions.get((stream, at)) or 0

    async def event_of(self, stream: str, version: int) -> RecordedEvent | None:
        """Return the event of a stream at a version, or None."""
        return await self._of_streams.get((stream, version))

    async def newest_of_stream(
        self, stream: str, *, version_max: int | None = None, limit: int
    ) -> Sequence[RecordedEvent]:
        """Return at most `limit` events of a stream, newest first, up to and including
        `version_max`."""
        async with borrow_connection(self._pool) as connection:
            return await newest_of_stream(
                connection, self._mapper, stream, version_max=version_max, limit=limit
            )
