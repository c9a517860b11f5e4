"""`GET /v1/events`: the log, as pages and as a live stream."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from application.queries import events as queries
from application.queries.access import require_scope
from application.queries.events import EventFilter
from application.queries.paging import LIMIT_DEFAULT
from application.queries.views.event import EventListView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    position_headers,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import (
    POSITION_MAX,
    ActorParameter,
    AsOfParameter,
    LimitParameter,
    RunParameter,
    TreeParameter,
    TypesParameter,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.responses.examples import EXAMPLES
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.routes.event_stream import MEDIA_TYPE as STREAM
from infrastructure.inbound.http.routes.event_stream import EventStream, Frames

router = APIRouter(tags=["log"])
_LAST_EVENT_ID = re.compile("[0-9]{1,18}")


def _page_or_stream() -> dict[int | str, dict[str, Any]]:
    responses = endpoint_responses("not_found", "foreign_cursor")
    example = EXAMPLES["listEvents"]["stream"]
    responses[200]["content"] = {STREAM: {"schema": {"type": "string"}, "example": example}}
    return responses


@router.get(
    "/v1/events",
    dependencies=AT_POSITION,
    operation_id="listEvents",
    response_model=EventListView,
    summary="The log",
    description=(
        "A page of events behind `after`, or of the newest ones with `before` or `order=desc`, as"
        " of `at`. With `Accept: text/event-stream` it is a live stream that resumes from"
        " `Last-Event-ID`, else `after`, else the head. With filters the stream sends `checkpoint`"
        " events, so that a resume skips what was filtered. A reader that is too slow is"
        " disconnected and resumes where it was. One request for a page looks at a bounded number"
        " of events, so a page may be short or empty: go on behind `nextAfter` until it is `head`,"
        " and with the newest first before `nextBefore` until that is null."
    ),
    responses=_page_or_stream(),
)
async def list_events(
    request: Request,
    services: InjectedServices,
    caller: ByCaller,
    after: Annotated[
        int | None,
        Query(ge=0, le=POSITION_MAX, description="Behind this position; streams default to now."),
    ] = None,
    limit: LimitParameter = LIMIT_DEFAULT,
    types: TypesParameter = (),
    run_id: RunParameter = None,
    tree: TreeParameter = None,
    actor: ActorParameter = None,
    before: Annotated[
        int | None,
        Query(ge=1, le=POSITION_MAX, description="Before this position, the newest first."),
    ] = None,
    order: Annotated[
        queries.EventOrder | None,
        Query(description="`desc` for the newest first, which is so with `before` anyway."),
    ] = None,
    at: AsOfParameter = None,
) -> Response:
    """The log."""
    require_scope(caller, "read")
    criteria = await queries.event_filter(
        services,
        caller,
        queries.EventParameters(types=types, run_id=run_id, tree=tree, actor=actor),
        at=at,
    )
    if STREAM in request.headers.get("accept", ""):
        if before is not None or order == "desc" or at is not None:
            raise HttpProblem(
                "invalid_request",
                "a stream goes on from now: leave before, order=desc and at out, or ask for pages",
            )
        return await _stream(request, services, criteria, after)
    page = await queries.list_events(
        services, criteria, after=after or 0, before=before, order=order, limit=limit
    )
    return view_response(services, page)


async def _stream(
    request: Request, services: Services, criteria: EventFilter, after: int | None
) -> EventStream:
    if services.closing():
        raise HttpProblem("unavailable", "the service is stopping; resume in a moment")
    head = await services.work.log.head()
    start = _resume(request.headers.get("last-event-id"), after, head)
    return EventStream(
        Frames(criteria.takes, after=start, filtered=not criteria.takes_everything),
        services.tail,
        start,
        services.closing,
        headers=position_headers(services, head),
        streams=request.app.state.streams,
    )


def _resume(last_event_id: str | None, after: int | None, head: int) -> int:
    if last_event_id is None:
        return min(after, head) if after is not None else head
    if not _LAST_EVENT_ID.fullmatch(last_event_id):
        raise HttpProblem(
            "invalid_request", "Last-Event-ID must be a position of this log; leave it out"
        )
    if int(last_event_id) > head:
        raise HttpProblem(
            "foreign_cursor", f"this log ends at {head}: that position is of another; begin again"
        )
    return int(last_event_id)
