"""Log in memory: the product's queue, batches and tail over a `Store`."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import copy_context
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from application.concurrency.tasks import cancel_all
from application.log.envelope import RecordedEvent
from application.log.event_log import Appended, LogUnavailableError, Submission
from infrastructure.outbound.log.append.batch import Batch
from infrastructure.outbound.log.append.fault_point import LogFaultPoint
from infrastructure.outbound.log.append.ledger import Head, Ledger, ReadPlan
from infrastructure.outbound.log.append.load import ReadRequest, ReadResult
from infrastructure.outbound.log.append.writer import RECONNECT_PAUSE_SECONDS, LogWriter, OnAppend
from infrastructure.outbound.log.read.database_clock import DatabaseClock
from infrastructure.outbound.log.read.state_cache import StateCaches
from infrastructure.outbound.log.read.tail import (
    PAGE_EVENTS,
    POLL_SECONDS,
    LogRewoundError,
    LogTail,
)
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.log.schema.followers import GIVE_UP
from tests.support.memory.store import Fault, Line, Store, StoreSession

T = TypeVar("T")


async def _no_connection() -> LogConnection:
    raise AssertionError("there is no database to connect to")


class CheckedLedger(Ledger):
    """The product's ledger, with a check: what it need not read is compared with the record. It
    always guesses.
    """

    unseen_min = 0

    def __init__(self, remembered: StateCaches, store: Store, line: Line) -> None:
        super().__init__(remembered)
        self._store = store
        self._line = line

    def take(self, head: Head) -> None:
        if Fault.LEDGER_KEPT in self._store.faults and self._head is not None:
            self._head = head
        super().take(head)

    def ask(self, submissions: Sequence[Submission[Any]], *, guess: bool) -> ReadPlan:
        question = super().ask(submissions, guess=guess)
        if self._store.is_owner(self._line) and not self._store.faults:
            self._store.require_true(question)
        return question


class MemoryWriter(LogWriter):
    """The product's writer and its tenure, whose sessions are a store's."""

    def __init__(
        self,
        store: Store,
        line: Line,
        *,
        new_id: Callable[[], UUID],
        on_append: OnAppend,
        remembered: StateCaches,
        clock: DatabaseClock,
    ) -> None:
        super().__init__(
            self._connect_to_store,
            channel="memory",
            new_id=new_id,
            on_append=on_append,
            fault_point=LogFaultPoint(),
            remembered=remembered,
            clock=clock,
        )
        self._shared = store
        self._line = line
        self._ledger = CheckedLedger(remembered, store, line)

    async def _connect_to_store(self) -> LogConnection:
        await self._line.send()
        return cast(LogConnection, StoreSession(self._shared, self._line))

    async def start(self) -> None:
        self._task = asyncio.create_task(self._write_on(), name="log writer")

    async def _read(self, connection: LogConnection, wanted: ReadRequest) -> ReadResult:
        if wanted == ReadRequest():
            return ReadResult()
        await self._line.send()
        found = self._shared.answer(wanted, self._remembered, cast(StoreSession, connection))
        await self._line.receive()
        return found

    async def _store_all(self, connection: LogConnection, batch: Batch) -> None:
        session = cast(StoreSession, connection)
        if Fault.GIVEN_UP_UNSTORED in self._shared.faults:
            await self.tenure.give_up(connection)
        await self._line.send()
        self._shared.commit(session, batch)
        await self._line.confirm()

    async def _is_recorded(self, connection: LogConnection, batch: Batch) -> bool:
        await self._line.send()
        is_there = self._shared.has_recorded(batch)
        await self._line.receive()
        return is_there


class MemoryTail(LogTail):
    """The product's tail, which reads a store."""

    def __init__(self, store: Store, line: Line) -> None:
        super().__init__(_no_connection, channel="memory")
        self._store = store
        self._line = line

    async def start(self) -> None:
        self._position = self._store.position
        # Notifications of another process arrive in this one.
        self._context = copy_context()
        self._store.listeners.append(self._hear)
        self._task = asyncio.create_task(self._follow_on(), name="log tail")

    async def close(self) -> None:
        self._store.listeners.remove(self._hear)
        if self._task is not None:
            await cancel_all([self._task])

    def _hear(self, by: int, payload: str) -> None:
        seconds = self._line.late_seconds()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(seconds, self._heard, by, payload, context=self._context)

    def _heard(self, by: int, payload: str) -> None:
        if by == self.own_writer():
            return
        if payload == GIVE_UP:
            self.on_give_up()
        else:
            self._hint.set()

    async def _read(
        self,
        after: int,
        *,
        limit: int,
        run_id: UUID | None = None,
        types: Sequence[str] = (),
    ) -> list[RecordedEvent]:
        until = self._position
        while True:
            try:
                return await self._line.ask(
                    lambda: self._store.read(
                        after=after, limit=limit, until=until, run_id=run_id, types=types
                    )
                )
            except LogUnavailableError:
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)

    async def _follow_on(self) -> None:
        while True:
            try:
                await self._catch_up_with_store()
                timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._hint.set)
                try:
                    await self._hint.wait()
                finally:
                    timer.cancel()
                self._hint.clear()
            except LogUnavailableError:
                await asyncio.sleep(RECONNECT_PAUSE_SECONDS)
            except Exception as error:
                self.failure = error
                self._recent.wake_all()
                self.on_failure(f"the log cannot be followed: {error}")
                return

    async def _catch_up_with_store(self) -> None:
        while True:
            events = await self._line.ask(self._behind)
            self._take_read(events)
            if len(events) < PAGE_EVENTS:
                return

    def _behind(self) -> list[RecordedEvent]:
        if self._store.position < self._position:
            raise LogRewoundError(f"the log ends before {self._position}")
        return self._store.read(after=self._position, limit=PAGE_EVENTS)


class MemoryLog:
    """Implements `EventLog` for one server: its own writer, tail and memory over a shared store."""

    def __init__(
        self,
        store: Store,
        line: Line,
        *,
        new_id: Callable[[], UUID],
        on_append: Callable[[Sequence[RecordedEvent]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._line = line
        self.remembered = StateCaches()
        self.tail = MemoryTail(store, line)
        self._writer = MemoryWriter(
            store,
            line,
            new_id=new_id,
            on_append=self._take,
            remembered=self.remembered,
            clock=self.tail.clock,
        )
        self._on_append = on_append
        self.tail.on_give_up = self._writer.ask_for_lock
        self.tail.own_writer = lambda: self._writer.backend_pid

    def _take(self, batch: Batch) -> None:
        self._on_append(batch.recorded)
        self.tail.take(batch.recorded, batch.changed_runs)

    @property
    def log_id(self) -> UUID:
        return self._store.log_id

    def end_with(self, end: Callable[[str], None]) -> None:
        """Set the callback for the reason when this log can no longer be followed."""
        self.tail.on_failure = end

    async def start(self) -> None:
        await self.tail.start()
        await self._writer.start()

    async def close(self) -> None:
        await self._writer.close()
        await self.tail.close()

    async def submit(self, submission: Submission[T]) -> Appended[T]:
        return await self._writer.submit(submission)

    async def head(self) -> int:
        return await self._line.ask(lambda: self._store.position)

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
        return await self._line.ask(
            lambda: self._store.read(
                after=after,
                limit=limit,
                types=types,
                run_id=run_id,
                correlations=correlations,
                actor=actor,
                until=until,
                newest_first=newest_first,
            )
        )

    async def newest_of_stream(
        self, stream: str, *, version_max: int | None = None, limit: int
    ) -> Sequence[RecordedEvent]:
        return await self._line.ask(
            lambda: [
                event
                for event in reversed(self._store.events)
                if event.envelope.stream == stream
                and (version_max is None or event.envelope.version <= version_max)
            ][:limit]
        )

    async def first(self, event_type: str, run_id: UUID) -> RecordedEvent | None:
        found = await self.read(limit=1, types=(event_type,), run_id=run_id)
        return found[0] if found else None

    async def queued_message(self, run_id: UUID) -> RecordedEvent | None:
        """Return the event that queued the message which is to become this run, or None."""
        queued = await self.read(limit=self._store.position, types=("MessageQueued",))
        return next(
            (event for event in queued if getattr(event.event, "run_id", None) == run_id), None
        )

    async def read_streams(
        self, streams: Sequence[str], *, types: Sequence[str] = (), until: int
    ) -> Sequence[RecordedEvent]:
        wanted = frozenset(streams)
        found = await self.read(limit=until, types=types, until=until) if until else ()
        return [event for event in found if event.envelope.stream in wanted]

    def now(self) -> datetime:
        return self._store.now()

    def known_instant(self, position: int) -> datetime | None:
        return None

    async def recorded_at(self, position: int) -> datetime | None:
        def found() -> datetime | None:
            is_there = 0 < position <= len(self._store.events)
            return self._store.events[position - 1].envelope.recorded_at if is_there else None

        return await self._line.ask(found)

    async def version_of(self, stream: str, *, at: int) -> int:
        return await self._line.ask(
            lambda: sum(event.envelope.stream == stream for event in self._store.events[:at])
        )

    async def event_of(self, stream: str, version: int) -> RecordedEvent | None:
        key = (stream, version)
        return await self._line.ask(
            lambda: next(
                (
                    event
                    for event in self._store.events
                    if (event.envelope.stream, event.envelope.version) == key
                ),
                None,
            )
        )
