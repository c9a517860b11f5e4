"""Trace spans of a run, as a pure function of its events. They contain no user text."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.ports.spans import Attributes, Span, SpanEvent, SpanLink
from application.telemetry.trace_context import TraceContext, span_id_of
from domain.run.events import (
    AgentOverridden,
    ContinuationPlanned,
    MessageReceived,
    RunAnnounced,
    RunClaimed,
    RunEnded,
    RunQueued,
    RunStarted,
    RunWaits,
    ScriptsResolved,
    SessionCreated,
    SpawnRefused,
    SpawnRequested,
)
from domain.run.facts import Plan, Usage

READ_TYPES = (
    *("SpawnRequested", "MessageReceived", "ScriptsResolved", "AgentOverridden", "SessionCreated"),
    *("ContinuationPlanned", "RunWaits", "RunQueued", "RunClaimed", "RunStarted", "RunEnded"),
    *("SpawnRefused", "RunAnnounced"),
)
"""Event types that spans are derived from."""

_FAILURES = frozenset({"error", "timeout", "unknown"})
Given = dict[str, str | int | bool | None]
Created = tuple[datetime, SessionCreated | ContinuationPlanned]
E = TypeVar("E")


def spans_of_end(events: Sequence[RecordedEvent], context: TraceContext) -> list[Span]:
    """Return the span of a run that is over, and the spans of its stages. `events` end with its
    last event."""
    first, last = events[0], events[-1]
    begin, end = first.event, last.event
    assert isinstance(begin, SpawnRequested | MessageReceived)
    assert isinstance(end, RunEnded | SpawnRefused)
    agent_id = _agent_id(events)
    span = Span(
        trace_id=context.trace_id,
        span_id=span_id_of(begin.run_id),
        parent_id=context.parent_id,
        is_parent_remote=context.is_parent_remote,
        name=f"invoke_agent {agent_id}" if agent_id else "invoke_agent",
        began=first.envelope.recorded_at,
        ended=last.envelope.recorded_at,
        attributes=_present(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.id": agent_id,
                "gen_ai.agent.name": agent_id,
                "gen_ai.conversation.id": str(begin.session_id),
                **_of_plan(events),
                **_of_end(end),
                "spawnlog.run.id": str(begin.run_id),
                "spawnlog.requester": begin.requester.session_key,
                "spawnlog.label": begin.label,
                "spawnlog.position": last.envelope.position,
            }
        ),
        events=tuple(_moments(events)),
        links=_links(first, context),
        failure=_failure(end),
    )
    return [span, *_stages(events, span, begin.run_id)]


def span_of_announcement(events: Sequence[RecordedEvent], context: TraceContext) -> Span | None:
    """Return the span from the end of a run to its announcement; None if it is not announced.

    It is beside the run's span, below the requester's, and linked to the run's.
    """
    first, last = events[0], events[-1]
    begin, announced = first.event, last.event
    assert isinstance(begin, SpawnRequested | MessageReceived)
    assert isinstance(announced, RunAnnounced)
    ended = _first(events, RunEnded)
    if announced.disposition != "inbox" or ended is None:
        return None
    agent_id, own = _agent_id(events), span_id_of(begin.run_id)
    return Span(
        trace_id=context.trace_id,
        span_id=span_id_of(begin.run_id, "announcement"),
        parent_id=context.parent_id if context.parent_id is not None else own,
        is_parent_remote=context.is_parent_remote,
        name=f"announce {agent_id}",
        began=ended[0],
        ended=last.envelope.recorded_at,
        attributes=_present(
            {
                "gen_ai.agent.id": agent_id,
                "spawnlog.run.id": str(begin.run_id),
                "spawnlog.requester": begin.requester.session_key,
                "spawnlog.position": last.envelope.position,
                "spawnlog.webhooks": len(announced.webhooks),
            }
        ),
        links=(SpanLink(context.trace_id, own),),
    )


def _stages(events: Sequence[RecordedEvent], span: Span, run_id: UUID) -> Iterator[Span]:
    """Yield the spans of the run's stages. A stage that was not completed ends with the run."""

    def instant(*kinds: type[object]) -> datetime | None:
        found = _first(events, *kinds)
        return found[0] if found is not None else None

    queued = instant(RunQueued)
    for stage, began, ended in (
        ("prepare", span.began, instant(SessionCreated, ContinuationPlanned)),
        ("wait", instant(RunWaits), queued),
        ("queue", queued, instant(RunClaimed)),
        ("execute", instant(RunStarted), None),
    ):
        if began is not None:
            yield Span(
                trace_id=span.trace_id,
                span_id=span_id_of(run_id, stage),
                parent_id=span.span_id,
                is_parent_remote=False,
                name=stage,
                began=began,
                ended=ended or span.ended,
                attributes={"spawnlog.run.id": str(run_id)},
            )


def _moments(events: Sequence[RecordedEvent]) -> Iterator[SpanEvent]:
    for envelope, event in events:
        if isinstance(event, ScriptsResolved):
            attributes: Attributes = {"spawnlog.scripts": len(event.receipts)}
            yield SpanEvent("scripts_resolved", envelope.recorded_at, attributes)
        elif isinstance(event, AgentOverridden):
            attributes = {
                "spawnlog.agent.from": event.from_agent_id,
                "spawnlog.agent.to": event.to_agent_id,
            }
            yield SpanEvent("agent_overridden", envelope.recorded_at, attributes)


def _links(first: RecordedEvent, context: TraceContext) -> Sequence[SpanLink]:
    """Return a link to the previous run of the session.

    None if the caller sent a trace, because the previous run may be in another one.
    """
    begin = first.event
    if not isinstance(begin, MessageReceived) or first.envelope.provenance.traceparent is not None:
        return ()
    return (SpanLink(context.trace_id, span_id_of(begin.continues)),)


def _of_plan(events: Sequence[RecordedEvent]) -> Given:
    created: Created | None = _first(events, SessionCreated, ContinuationPlanned)
    if created is None:
        return {}
    plan: Plan = created[1].plan
    return {
        "gen_ai.provider.name": plan.model_provider,
        "gen_ai.request.model": plan.model,
        "spawnlog.runtime": plan.runtime,
        "spawnlog.role": created[1].role,
    }


def _of_end(end: RunEnded | SpawnRefused) -> Given:
    if isinstance(end, SpawnRefused):
        return {"error.type": end.rule, "spawnlog.rule": end.rule, "spawnlog.status": end.status}
    return {
        "error.type": _failure(end),
        "spawnlog.outcome": end.outcome,
        "spawnlog.end.reason": end.reason,
        **(_of_usage(end.usage) if end.usage is not None else {}),
    }


def _of_usage(usage: Usage) -> Given:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _failure(end: RunEnded | SpawnRefused) -> str | None:
    if isinstance(end, SpawnRefused):
        return end.rule
    return end.outcome if end.outcome in _FAILURES else None


def _agent_id(events: Sequence[RecordedEvent]) -> str | None:
    """Return the agent that the child ran as, or else the requested one."""
    created = _first(events, SessionCreated)
    if created is not None:
        return created[1].agent_id
    begin = events[0].event
    return begin.agent_id if isinstance(begin, MessageReceived) else _requested(begin)


def _requested(begin: object) -> str | None:
    return begin.requested_agent_id if isinstance(begin, SpawnRequested) else None


def _first(events: Sequence[RecordedEvent], *kinds: type[E]) -> tuple[datetime, E] | None:
    """Return the first event of these kinds, and its time."""
    for envelope, event in events:
        if isinstance(event, kinds):
            return envelope.recorded_at, event
    return None


def _present(given: Given) -> Attributes:
    return {name: value for name, value in given.items() if value is not None}
