"""Operations as live streams of events: the log, and the transcript of a run."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import orjson
from starlette.requests import Request

from application.concurrency.tasks import cancel_all
from application.log.envelope import RecordedEvent
from application.log.event_log import Tail
from application.queries.access import Caller
from application.queries.events import ListEvents, event_filter
from application.queries.operation import Parameters
from application.queries.runs import EntryPage, GetRunTranscript, entry_view, follow_transcript
from application.queries.views.event import event_view
from infrastructure.inbound.http.requests.caller import header_of, position_headers
from infrastructure.inbound.http.requests.event_stream import COMMENT, EventStream, frame
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem

CHECKPOINT_EVENTS = 100
FRAMES_AT_ONCE_MAX = 50
_POSITION = re.compile("[0-9]{1,18}")
_ENTRY_NUMBER = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPace:
    """Timing of a stream of the log.

    Attributes:
        comment_seconds: Maximum silence before a comment is sent.
        closing_look_seconds: Interval of checks whether the server is stopping.
    """

    comment_seconds: float = 15.0
    closing_look_seconds: float = 0.25


async def stream_events(
    *, request: Request, services: Services, caller: Caller, query: ListEvents
) -> EventStream:
    """Stream the log from `Last-Event-ID`, else from `after`, else from the head."""
    criteria = await event_filter(services, caller, query, at=query.at)
    is_of_past = query.before is not None or query.order == "desc" or query.at is not None
    if is_of_past or _has_limit(query):
        raise HttpProblem(
            "invalid_request",
            "a stream runs forward: omit before, order=desc, at and limit, or request pages",
        )
    _require_open(services)
    head = criteria.position
    start = head if query.after is None else min(query.after, head)
    seen = _last_event_id(request, _POSITION, "a position of this log")
    if seen is not None and seen > head:
        raise HttpProblem(
            "foreign_cursor",
            f"this log ends at {head}, so the position is of another log; start again",
        )
    start = start if seen is None else seen
    frames = Frames(criteria.takes, after=start, filtered=not criteria.takes_everything)
    return EventStream(
        event_frames(frames, services.tail, start, services.closing),
        headers=position_headers(services, head),
        streams=request.app.streams,
    )


async def stream_transcript(
    *,
    request: Request,
    services: Services,
    caller: Caller,
    run_id: str,
    query: GetRunTranscript,
) -> EventStream:
    """Stream the entries of a run until it is over."""
    is_of_page = query.at is not None or query.last is not None or query.wait is not None
    if is_of_page or _has_limit(query):
        raise HttpProblem(
            "invalid_request",
            "at, last, limit and wait cannot be used with a stream",
        )
    _require_open(services)
    seen = _last_event_id(request, _ENTRY_NUMBER, "the number of an entry")
    after = query.after if seen is None else seen
    pages = await follow_transcript(services, caller, run_id, after=after, tools=query.tools)
    return EventStream(
        _entry_frames(pages),
        headers=position_headers(services, services.tail.position),
        streams=request.app.streams,
    )


def _has_limit(query: Parameters) -> bool:
    """Return True if the caller gave a limit, which only applies to pages."""
    return "limit" in query.model_fields_set


def _require_open(services: Services) -> None:
    if services.closing():
        raise HttpProblem("unavailable", "the server is stopping; resume in a moment")


def _last_event_id(request: Request, form: re.Pattern[str], noun: str) -> int | None:
    given = header_of(request, "Last-Event-ID")
    if given is None:
        return None
    if not form.fullmatch(given):
        raise HttpProblem("invalid_request", f"Last-Event-ID must be {noun}; omit it")
    return int(given)


class Frames:
    """Events as frames.

    Filtered events are sent as a `checkpoint` now and then, so that a reader that resumes skips
    them.
    """

    def __init__(
        self, takes: Callable[[RecordedEvent], bool], *, after: int, filtered: bool
    ) -> None:
        self._takes = takes
        self._filtered = filtered
        self._position = after
        self._sent = after

    def frame(self, recorded: RecordedEvent) -> bytes | None:
        """Return the frame of an event, or None if it is filtered and needs no checkpoint yet."""
        self._position = recorded.envelope.position
        if self._takes(recorded):
            self._sent = self._position
            return frame(self._position, recorded.envelope.type, event_view(recorded).json_bytes())
        if self._position - self._sent >= CHECKPOINT_EVENTS:
            return self.checkpoint()
        return None

    def pause(self) -> bytes:
        """Return the frame to send after a silence."""
        if self._filtered and self._position > self._sent:
            return self.checkpoint()
        return COMMENT

    def checkpoint(self) -> bytes:
        """Return a frame with the position up to which the reader has everything."""
        self._sent = self._position
        return frame(self._position, "checkpoint", b'{"position":%d}' % self._position)


async def event_frames(
    frames: Frames,
    tail: Tail,
    after: int,
    closing: Callable[[], bool],
    pace: StreamPace | None = None,
) -> AsyncGenerator[bytes]:
    """Yield the frames of the events after a position, until the server stops."""
    pace = pace or StreamPace()
    look_seconds = min(pace.closing_look_seconds, pace.comment_seconds)
    pages = aiter(tail.follow(after=after))
    coming: asyncio.Future[Sequence[RecordedEvent]] | None = None
    spoken = time.monotonic()
    try:
        while not closing():
            if coming is None:
                coming = asyncio.ensure_future(anext(pages))
                # Most events are available at once, and a wait with a timeout costs as much as
                # sending one.
                await asyncio.sleep(0)
            if not coming.done():
                await asyncio.wait((coming,), timeout=look_seconds)
            page: Sequence[RecordedEvent] = ()
            if coming.done():
                page, coming = coming.result(), None
            for number, recorded in enumerate(page, 1):
                made = frames.frame(recorded)
                if made is not None:
                    yield made
                    spoken = time.monotonic()
                if number % FRAMES_AT_ONCE_MAX == 0:
                    # A reader that catches up must not block the others.
                    await asyncio.sleep(0)
                    if closing():
                        return
            if time.monotonic() - spoken >= pace.comment_seconds:
                yield frames.pause()
                spoken = time.monotonic()
    finally:
        if coming is not None:
            await cancel_all((coming,))


async def _entry_frames(pages: AsyncGenerator[EntryPage]) -> AsyncGenerator[bytes]:
    async with aclosing(pages):
        async for page in pages:
            for entry in page.entries:
                yield frame(entry.sequence, "entry", entry_view(entry).json_bytes())
            if page.is_complete and page.following is None:
                yield frame(page.last, "end", _end_of(page))
            elif not page.entries:
                yield COMMENT


def _end_of(page: EntryPage) -> bytes:
    run = page.run
    return orjson.dumps(
        {
            "runId": run.run_id,
            "stage": run.stage,
            "status": page.status,
            "outcome": run.outcome,
            "continuedBy": run.continued_by,
            "lastSequence": page.last,
        }
    )
