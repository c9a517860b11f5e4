"""The trace context of runs, derived from the record alone, so that every server derives the same.

A trace begins with a run that was not requested by another run, and has the id of that run.
Everything below it and every message to it belongs to the same trace. A request with a
`traceparent` puts its run into the caller's trace.
"""

import hashlib
from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.log.event_log import EventLog
from domain.run.events import MessageReceived, SpawnRequested
from domain.session.role import ANCESTORS_MAX
from domain.values.record import run_stream

CONTEXTS_MAX = 10_000
_SAMPLED = 1


class TraceContext(NamedTuple):
    """Trace context of a run.

    Attributes:
        parent_id: The parent of the run's span; None for the root of the trace.
        is_parent_remote: Whether the parent belongs to another system.
        is_sampled: False if the caller asked for no spans.
    """

    trace_id: int
    parent_id: int | None
    is_parent_remote: bool
    is_sampled: bool


def span_id_of(run_id: UUID, part: str = "run") -> int:
    """Return the id of a run's span, or of a span beside or below it."""
    digest = hashlib.sha256(f"{run_id}:{part}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


def traceparent_of_run(run_id: UUID, context: TraceContext) -> str:
    """Return the W3C trace context under which the run's program may send its own spans."""
    flags = _SAMPLED if context.is_sampled else 0
    return f"00-{context.trace_id:032x}-{span_id_of(run_id):016x}-{flags:02x}"


def read_traceparent(text: str | None) -> TraceContext | None:
    """Return the context of a request's `traceparent`; None if it names no trace."""
    if text is None:
        return None
    _, trace_id, parent_id, flags = text.split("-")
    context = TraceContext(
        int(trace_id, 16), int(parent_id, 16), True, bool(int(flags, 16) & _SAMPLED)
    )
    return context if context.trace_id and context.parent_id else None


def run_above(first: RecordedEvent) -> UUID | None:
    """Return the run whose trace a run belongs to, by its first event; None if it begins a
    trace."""
    event = first.event
    if isinstance(event, MessageReceived):
        return event.opened_by
    assert isinstance(event, SpawnRequested)
    return event.requester.run_id


def context_of(first: RecordedEvent, above: TraceContext | None) -> TraceContext:
    """Return the context of a run with this first event. `above` is the context of the run above
    it."""
    event = first.event
    assert isinstance(event, SpawnRequested | MessageReceived)
    brought = read_traceparent(first.envelope.provenance.traceparent)
    if brought is not None:
        return brought
    if above is None:
        return TraceContext(event.run_id.int, None, False, True)
    if isinstance(event, SpawnRequested):
        assert event.requester.run_id is not None
        return above._replace(parent_id=span_id_of(event.requester.run_id), is_parent_remote=False)
    if above.parent_id is None:
        # The run's session began the trace, so the run's parent is the first run of the session.
        return above._replace(parent_id=span_id_of(event.opened_by))
    return above


class TraceContexts:
    """Contexts of runs. They never change, and the newest are cached."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known = OrderedDict[UUID, TraceContext]()

    async def of(self, run_id: UUID, first: RecordedEvent | None = None) -> TraceContext:
        """Return the context of a recorded run. `first` is its first event, if the caller has
        it."""
        walked: list[tuple[UUID, RecordedEvent]] = []
        context: TraceContext | None = None
        current: UUID | None = run_id
        while current is not None and len(walked) < ANCESTORS_MAX:
            context = self._known.get(current)
            if context is not None:
                break
            begin = first or await self._log.event_of(run_stream(current), 1)
            if begin is None:
                break
            first = None
            walked.append((current, begin))
            brought = read_traceparent(begin.envelope.provenance.traceparent)
            current = run_above(begin) if brought is None else None
        for walked_id, begin in reversed(walked):
            context = self._remember(walked_id, context_of(begin, context))
        assert context is not None, f"run {run_id} is not on record"
        return context

    def _remember(self, run_id: UUID, context: TraceContext) -> TraceContext:
        self._known[run_id] = context
        if len(self._known) > CONTEXTS_MAX:
            self._known.popitem(last=False)
        return context
