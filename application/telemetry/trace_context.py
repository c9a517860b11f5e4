"""The trace that a run belongs to, and the span above it: told from the record alone, so that every
server and every start finds the same.

A trace begins with a run whose requester is no run itself, and has the id of that run; everything
below it, and every message to it, is in the same trace. A request that brought a `traceparent` puts
its run into the trace of whoever sent it.
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
    """Of a run. `parent_id` is the span above that of the run, None for the first of its trace;
    whoever is not `is_sampled` asked for no spans."""

    trace_id: int
    parent_id: int | None
    is_parent_remote: bool
    is_sampled: bool


def span_id_of(run_id: UUID, part: str = "run") -> int:
    """The id of a run's span, or of one beside or below it."""
    digest = hashlib.sha256(f"{run_id}:{part}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


def traceparent_of_run(run_id: UUID, context: TraceContext) -> str:
    """The W3C trace context under which the run's program may send spans of its own."""
    flags = _SAMPLED if context.is_sampled else 0
    return f"00-{context.trace_id:032x}-{span_id_of(run_id):016x}-{flags:02x}"


def read_traceparent(text: str | None) -> TraceContext | None:
    """What a request brought along; None for what names no trace."""
    if text is None:
        return None
    _, trace_id, parent_id, flags = text.split("-")
    context = TraceContext(
        int(trace_id, 16), int(parent_id, 16), True, bool(int(flags, 16) & _SAMPLED)
    )
    return context if context.trace_id and context.parent_id else None


def run_above(first: RecordedEvent) -> UUID | None:
    """The run whose trace a run belongs to, by its first event; None when it begins one."""
    event = first.event
    if isinstance(event, MessageReceived):
        return event.opened_by
    assert isinstance(event, SpawnRequested)
    return event.requester.run_id


def context_of(first: RecordedEvent, above: TraceContext | None) -> TraceContext:
    """The context of a run that begins with this event; `above` is that of the run above it."""
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
        # Its session began the trace: what it goes on with stands below that.
        return above._replace(parent_id=span_id_of(event.opened_by))
    return above


class TraceContexts:
    """Contexts by run. What was found once does not change, and the newest are kept."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known = OrderedDict[UUID, TraceContext]()

    async def of(self, run_id: UUID, first: RecordedEvent | None = None) -> TraceContext:
        """The context of a run that is on record; its first event need not be read when it is at
        hand."""
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
        for each, begin in reversed(walked):
            context = self._remember(each, context_of(begin, context))
        assert context is not None, f"run {run_id} is not on record"
        return context

    def _remember(self, run_id: UUID, context: TraceContext) -> TraceContext:
        self._known[run_id] = context
        if len(self._known) > CONTEXTS_MAX:
            self._known.popitem(last=False)
        return context
