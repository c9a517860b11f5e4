"""Exports the spans of events that this process has recorded, in the background.

Delivery is at most once: the queue is in memory, so spans in the queue of a server that dies are
lost, and a start exports nothing from before. The log itself is complete.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from application.concurrency.tasks import cancel_all, with_timeout
from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog, LogUnavailableError
from application.ports.spans import Span, SpanExportError, SpanReceiver
from application.telemetry.run_spans import READ_TYPES, span_of_announcement, spans_of_end
from application.telemetry.trace_context import TraceContexts
from domain.run.events import RunAnnounced, RunEnded, SpawnRefused
from domain.values.record import run_id_of, run_stream

QUEUE_EVENTS_MAX = 10_000
BATCH_EVENTS_MAX = 256
LINGER_SECONDS = 0.25
"""Delay to collect ended runs, because one request for each would be most of the work."""

CLOSE_SECONDS_MAX = 3.0
_SPAN_EVENTS = frozenset((RunEnded, SpawnRefused, RunAnnounced))
_log = logging.getLogger("spawnlog.telemetry")


class _NotedEvent(NamedTuple):
    """An event that spans are derived at."""

    run_id: UUID
    position: int
    is_end: bool


class SpanTotals:
    """Counters since the start: spans sent, spans not accepted, and events dropped without spans
    because the queue was full or the database was away."""

    def __init__(self) -> None:
        self.sent = 0
        self.failed = 0
        self.dropped = 0


class SpanExport:
    """The span exporter of a process."""

    def __init__(self, log: EventLog, contexts: TraceContexts, receiver: SpanReceiver) -> None:
        self._log = log
        self._contexts = contexts
        self._receiver = receiver
        self._queue = asyncio.Queue[_NotedEvent](QUEUE_EVENTS_MAX)
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False
        self.totals = SpanTotals()

    def take(self, events: Sequence[RecordedEvent]) -> None:
        """Queue events that this process has committed. Never waits or raises."""
        for envelope, event in events:
            if type(event) in _SPAN_EVENTS:
                run_id = run_id_of(envelope.stream)
                assert run_id is not None
                is_end = not isinstance(event, RunAnnounced)
                try:
                    self._queue.put_nowait(_NotedEvent(run_id, envelope.position, is_end))
                except asyncio.QueueFull:
                    self.totals.dropped += 1

    def start(self) -> None:
        self._task = asyncio.create_task(self._send_on(), name="span export")

    async def close(self) -> None:
        """Send the queue, for at most `CLOSE_SECONDS_MAX`, then stop."""
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await with_timeout(self._queue.join(), CLOSE_SECONDS_MAX)
            await cancel_all([self._task])
            self._task = None
        await self._receiver.close()

    async def _send_on(self) -> None:
        while True:
            noted = [await self._queue.get()]
            if self._queue.qsize() < BATCH_EVENTS_MAX:
                await asyncio.sleep(LINGER_SECONDS)
            while len(noted) < BATCH_EVENTS_MAX and not self._queue.empty():
                noted.append(self._queue.get_nowait())
            try:
                await self._send(noted)
            except SpanExportError as why:
                self._note_failure(str(why))
            except LogUnavailableError as why:
                self.totals.dropped += len(noted)
                self._note_failure(str(why))
            except Exception:
                self.totals.dropped += len(noted)
                _log.exception("spans of %d events could not be built", len(noted))
            finally:
                for _ in noted:
                    self._queue.task_done()

    async def _send(self, noted: Sequence[_NotedEvent]) -> None:
        spans = await self._spans(noted)
        if not spans:
            return
        try:
            await self._receiver.send(spans)
        except SpanExportError:
            self.totals.failed += len(spans)
            raise
        self.totals.sent += len(spans)
        if self._is_failing:
            _log.warning("spans are accepted again")
            self._is_failing = False

    def _note_failure(self, why: str) -> None:
        if not self._is_failing:
            _log.warning("spans are not sent: %s", why)
        self._is_failing = True

    async def _spans(self, noted: Sequence[_NotedEvent]) -> list[Span]:
        streams = sorted({run_stream(note.run_id) for note in noted})
        until = max(note.position for note in noted)
        read = await self._log.read_streams(streams, types=READ_TYPES, until=until)
        by_stream: dict[str, list[RecordedEvent]] = {}
        for recorded in read:
            by_stream.setdefault(recorded.envelope.stream, []).append(recorded)
        found: list[Span] = []
        for note in noted:
            of_run = by_stream[run_stream(note.run_id)]
            context = await self._contexts.of(note.run_id, of_run[0])
            if not context.is_sampled:
                continue
            events = [
                recorded for recorded in of_run if recorded.envelope.position <= note.position
            ]
            if note.is_end:
                found += spans_of_end(events, context)
            else:
                announcement = span_of_announcement(events, context)
                found += [announcement] if announcement is not None else []
        return found
