"""Spans: stretches of time that somebody else draws, and where they are sent."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

Attributes = Mapping[str, str | int | bool]


class SpanEvent(NamedTuple):
    """A moment within a span."""

    name: str
    at: datetime
    attributes: Attributes


class SpanLink(NamedTuple):
    """Another span that this one is about."""

    trace_id: int
    span_id: int


class Span(NamedTuple):
    """A stretch of time. `parent_id` is None for the first of its trace; with `is_parent_remote` it
    is a span of somebody else. `failure` says in one word what went wrong."""

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


class SpansNotSent(Exception):
    """The receiver did not take them; the text is for the server's log."""


class SpanReceiver(Protocol):
    """Takes spans."""

    async def send(self, spans: Sequence[Span]) -> None:
        """Send them, once; `SpansNotSent` when they were not taken."""
        ...

    async def close(self) -> None:
        """Send no more."""
        ...
