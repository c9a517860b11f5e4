"""`GET /v1/events`: the log, as pages and as a live stream."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from application.queries.access import Caller
from domain.event_types import EVENT_TYPES
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.requests.as_of import resolve_as_of
from infrastructure.inbound.http.requests.caller import (
    RUN_ID_SCHEMA,
    ByCaller,
    InjectedServices,
    json_response,
    position_headers,
    readable_run,
    require_scope,
    resolve_session_key,
)
from infrastructure.inbound.http.requests.paging import (
    LIMIT_DEFAULT,
    POSITION_MAX,
    EventFilter,
    LimitParameter,
    page_of_events,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import problem_responses, success_response
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.routes.event_stream import MEDIA_TYPE as STREAM
from infrastructure.inbound.http.routes.event_stream import EventStream, Frames
from infrastructure.inbound.http.schemas.event import event_body

router = APIRouter(tags=["log"])
TYPES = frozenset(name for name, _ in EVENT_TYPES)
TYPE_SCHEMA: dict[str, Any] = {"enum": sorted(TYPES)}
_LAST_EVENT_ID = re.compile("[0-9]{1,18}")


def _page_or_stream() -> dict[Any, Any]:
    responses = success_response(spawns_and_runs.EVENTS)
    schema = {"type": "string"}
    responses[200]["content"][STREAM] = {"schema": schema, "example": spawns_and_runs.FRAME}
    return responses


@router.get(
    "/v1/events",
    operation_id="listEvents",
    summary="The log",
    description=(
        "A page of events behind `after`, or, with `Accept: text/event-stream`, a live stream that"
        " resumes from `Last-Event-ID`, else `after`, else the head. With filters the stream sends"
        " `checkpoint` events, so that a resume skips what was filtered. A reader that is too slow"
        " is disconnected and resumes where it was. One request for a page looks at a bounded"
        " number of events, so a page may be short or empty: go on behind `nextAfter` until it is"
        " `head`."
    ),
    responses={
        **_page_or_stream(),
        **problem_responses("not_found", "foreign_cursor"),
    },
)
async def list_events(
    request: Request,
    doors: InjectedServices,
    caller: ByCaller,
    after: Annotated[
        int | None,
        Query(ge=0, le=POSITION_MAX, description="Behind this position; streams default to now."),
    ] = None,
    limit: LimitParameter = LIMIT_DEFAULT,
    types: Annotated[
        tuple[Annotated[str, Field(max_length=2000, json_schema_extra=TYPE_SCHEMA)], ...],
        Query(description="Of any of these types: one each time, or names by commas."),
    ] = (),
    runId: Annotated[
        str | None,
        Query(max_length=64, description="Of this run only.", json_schema_extra=RUN_ID_SCHEMA),
    ] = None,
    tree: Annotated[
        str | None,
        Query(
            max_length=2048,
            description=(
                "Of the tree below this root session only: a key, a session id, or `current`."
            ),
        ),
    ] = None,
) -> Response:
    """The log."""
    require_scope(caller, "read")
    wanted = await _filter(doors, caller, types, runId, tree)
    if STREAM in request.headers.get("accept", ""):
        return await _stream(request, doors, wanted, after)
    head = (await resolve_as_of(doors, None)).position
    page = await page_of_events(doors.work.log, wanted, after=after or 0, limit=limit, head=head)
    items = [event_body(recorded) for recorded in page.events]
    body = {"items": items, "nextAfter": page.position, "head": head}
    return json_response(doors, body, head)


async def _filter(
    doors: Services, caller: Caller, types: tuple[str, ...], run_id: str | None, tree: str | None
) -> EventFilter:
    names = tuple(name.strip() for name in ",".join(types).split(",") if name.strip())
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise HttpProblem(
            "invalid_request",
            f"there is no event type {unknown[0]}; there are {', '.join(sorted(TYPES))}",
        )
    run = (
        await readable_run(doors, caller, run_id, await resolve_as_of(doors, None))
        if run_id
        else None
    )
    if run is None and caller.run_id is not None:
        raise HttpProblem("not_permitted", "a child's token reads events of one run: give runId")
    if tree:
        tree = await resolve_session_key(doors, caller, tree, pointer="/query/tree")
    return EventFilter(names, run.run_id if run else None, tree or None, caller)


async def _stream(
    request: Request, doors: Services, wanted: EventFilter, after: int | None
) -> EventStream:
    if doors.closing():
        raise HttpProblem("unavailable", "the service is stopping; resume in a moment")
    head = (await resolve_as_of(doors, None)).position
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
        raise HttpProblem(
            "invalid_request", "Last-Event-ID must be a position of this log; leave it out"
        )
    if int(last_event_id) > head:
        raise HttpProblem(
            "foreign_cursor", f"this log ends at {head}: that position is of another; begin again"
        )
    return int(last_event_id)
