"""Convert spans to the form that the OpenTelemetry library exports."""

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
    """Return the span for the library, with the same ids."""
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
        events=[
            Event(event.name, event.attributes, _nanoseconds(event.at)) for event in span.events
        ],
        links=[Link(_context(link.trace_id, link.span_id)) for link in span.links],
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.UNSET if failure is None else StatusCode.ERROR, failure),
        start_time=_nanoseconds(span.began),
        end_time=_nanoseconds(span.ended),
        instrumentation_scope=SCOPE,
    )


def _context(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=is_remote, trace_flags=_SAMPLED)


def _nanoseconds(at: datetime) -> int:
    # In integers: a float cannot represent nanoseconds since 1970.
    return int(at.timestamp()) * 1_000_000_000 + at.microsecond * 1_000
