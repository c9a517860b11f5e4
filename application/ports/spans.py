"""Trace spans and their export."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

Attributes = Mapping[str, str | int | bool]


class SpanEvent(NamedTuple):
    name: str
    at: datetime
    attributes: Attributes


class SpanLink(NamedTuple):
    """A reference to another span."""

    trace_id: int
    span_id: int


class Span(NamedTuple):
    """A trace span.

    Attributes:
        parent_id: None for the root span of a trace.
        is_parent_remote: Whether the parent belongs to another system.
        failure: One word for the error, if any.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    is_parent_remote: bool
    name: str
    began: datetime
    ended: datetime
    attributes: Attributes
    events: Sequence[SpanEvent] = ()
    links: Sequence[SpanLink] = ()
    failure: str | None = None


class SpanExportError(Exception):
    """The receiver did not accept the spans. The message is for the server's log."""


class SpanReceiver(Protocol):
    async def send(self, spans: Sequence[Span]) -> None:
        """Send spans once, without retry.

        Raises:
            SpanExportError: If they were not accepted.
        """
        ...

    async def close(self) -> None: ...
