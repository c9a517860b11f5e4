"""Spans in the form in which the library sends them."""

from datetime import datetime

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from application.log.envelope import WRITER_VERSION
from application.ports.spans import Span

SCOPE = InstrumentationScope("spawnlog", WRITER_VERSION)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def readable_span(span: Span, resource: Resource) -> ReadableSpan:
    """The same span; its ids are ours."""
    parent = None
    if span.parent_id is not None:
        parent = _context(span.trace_id, span.parent_id, is_remote=span.is_parent_remote)
    failure = span.failure
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=parent,
        resource=resource,
        attributes=span.attributes,
        events=[Event(one.name, one.attributes, _nanoseconds(one.at)) for one in span.events],
        links=[Link(_context(one.trace_id, one.span_id)) for one in span.links],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.UNSET if failure is None else StatusCode.ERROR, failure),
        start_time=_nanoseconds(span.began),
        end_time=_nanoseconds(span.ended),
        instrumentation_scope=SCOPE,
    )


def _context(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=is_remote, trace_flags=_SAMPLED)


def _nanoseconds(at: datetime) -> int:
    # In whole numbers: a float has not as many digits.
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1_000
