"""`GET /v1/events`: the log, as pages and as a live stream."""

import re
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from application.access import Caller
from application.envelope import RecordedEvent
from domain.event_types import EVENT_TYPES
from infrastructure.inbound.http import examples
from infrastructure.inbound.http.described import problems, success
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.event_bodies import event_body
from infrastructure.inbound.http.event_stream import MEDIA_TYPE as STREAM
from infrastructure.inbound.http.event_stream import EventStream, Frames
from infrastructure.inbound.http.moments import as_of
from infrastructure.inbound.http.paging import LIMIT_DEFAULT, POSITION_MAX, Limit
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    answer,
    canonical_key,
    must,
    own_run,
    position_headers,
)

router = APIRouter(tags=["log"])

TYPES = frozenset(name for name, _ in EVENT_TYPES)
SCAN_EVENTS = 500
SCAN_PAGES_MAX = 40
_LAST_EVENT_ID = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events are wanted, and whose the caller may see."""

    types: tuple[str, ...]
    run_id: UUID | None
    tree: str | None
    caller: Caller

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is left out."""
        narrowed = self.types or self.run_id or self.tree
        return not narrowed and self.caller.sees_everything

    def takes(self, recorded: RecordedEvent) -> bool:
        """Whether an event is wanted and may be seen."""
        source = recorded.envelope.provenance
        if self.types and recorded.envelope.type not in self.types:
            return False
        if self.run_id is not None and source.run_id != self.run_id:
            return False
        if self.tree is not None and source.correlation != self.tree:
            return False
        if self.caller.sees_everything or self.run_id is not None:
            return True
        return source.correlation is not None and self.caller.acts_for(source.correlation)


def _page_or_stream() -> dict[Any, Any]:
    responses = success(examples.EVENTS)
    schema = {"type": "string"}
    responses[200]["content"][STREAM] = {"schema": schema, "example": examples.FRAME}
    return responses


@router.get(
    "/v1/events",
    operation_id="listEvents",
    summary="The log",
    description=(
        "A page of events behind `after`, or, with `Accept: text/event-stream`, a live stream that"
        " resumes from `Last-Event-ID`, else `after`, else the head. With filters the stream sends"
        " `checkpoint` events, so that a resume skips what was filtered. A reader that is too slow"
        " is disconnected and resumes where it was."
    ),
    responses={
        **_page_or_stream(),
        **problems("not_found", "foreign_cursor"),
    },
)
async def list_events(
    request: Request,
    doors: InDoors,
    caller: ByCaller,
    after: Annotated[
        int | None,
        Query(ge=0, le=POSITION_MAX, description="Behind this position; streams default to now."),
    ] = None,
    limit: Limit = LIMIT_DEFAULT,
    types: Annotated[str | None, Query(max_length=2000, description="Names, by commas.")] = None,
    runId: Annotated[str | None, Query(max_length=64, description="Of this run only.")] = None,
    tree: Annotated[
        str | None,
        Query(max_length=2048, description="Of the tree below this root session only."),
    ] = None,
) -> Response:
    """The log."""
    must(caller, "read")
    wanted = await _filter(doors, caller, types, runId, tree)
    if STREAM in request.headers.get("accept", ""):
        return await _stream(request, doors, wanted, after)
    head = (await as_of(doors, None)).position
    items, following = await _page(doors, wanted, after or 0, limit, head)
    body = {"items": items, "nextAfter": following, "head": head}
    return answer(doors, body, head)


async def _filter(
    doors: Doors, caller: Caller, types: str | None, run_id: str | None, tree: str | None
) -> Filter:
    names = tuple(name.strip() for name in types.split(",") if name.strip()) if types else ()
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise Problem(
            "invalid_request",
            f"there is no event type {unknown[0]}; there are {', '.join(sorted(TYPES))}",
        )
    run = await own_run(doors, caller, run_id, await as_of(doors, None)) if run_id else None
    if run is None and caller.run_id is not None:
        raise Problem("not_permitted", "a child's token reads events of one run: give runId")
    return Filter(
        names, run.run_id if run else None, canonical_key(doors, tree) if tree else None, caller
    )


async def _page(
    doors: Doors, wanted: Filter, after: int, limit: int, head: int
) -> tuple[list[dict[str, object]], int]:
    """Up to `limit` events, and the position up to which the log was looked through: a question
    that few events answer goes on from there."""
    items: list[dict[str, object]] = []
    position = after
    for _ in range(SCAN_PAGES_MAX):
        if len(items) >= limit or position >= head:
            break
        found = await doors.work.log.read(
            after=position,
            limit=SCAN_EVENTS,
            until=head,
            types=wanted.types,
            run_id=wanted.run_id,
            correlations=(wanted.tree,) if wanted.tree else None,
        )
        if not found:
            return items, max(position, head)
        for recorded in found:
            position = recorded.envelope.position
            if wanted.takes(recorded):
                items.append(event_body(recorded))
                if len(items) == limit:
                    break
    return items, position


async def _stream(request: Request, doors: Doors, wanted: Filter, after: int | None) -> EventStream:
    if doors.closing():
        raise Problem("unavailable", "the service is stopping; resume in a moment")
    head = (await as_of(doors, None)).position
    start = _resume(request.headers.get("last-event-id"), after, head)
    return EventStream(
        Frames(wanted.takes, after=start, filtered=not wanted.takes_everything),
        doors.tail,
        start,
        doors.closing,
        headers=position_headers(doors, head),
    )


def _resume(last_event_id: str | None, after: int | None, head: int) -> int:
    if last_event_id is None:
        return min(after, head) if after is not None else head
    if not _LAST_EVENT_ID.fullmatch(last_event_id):
        raise Problem(
            "invalid_request", "Last-Event-ID must be a position of this log; leave it out"
        )
    if int(last_event_id) > head:
        raise Problem(
            "foreign_cursor", f"this log ends at {head}: that position is of another; begin again"
        )
    return int(last_event_id)
