"""`GET /v1/runs/{runId}/transcript`: pages, or a live stream."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from application.queries import runs
from application.queries.access import Caller
from application.queries.paging import LIMIT_DEFAULT, LIMIT_MAX
from application.queries.views.run_records import TranscriptView
from domain.values.moments import DURATION_FORMS
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    RunInPath,
    position_headers,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import After, AsOfParameter, LimitParameter
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import endpoint_responses
from infrastructure.inbound.http.responses.examples import EXAMPLES
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.routes.event_stream import MEDIA_TYPE as STREAM
from infrastructure.inbound.http.routes.transcript_stream import TranscriptStream

router = APIRouter(tags=["runs"])
_LAST_EVENT_ID = re.compile("[0-9]{1,9}")


def _page_or_stream() -> dict[int | str, dict[str, Any]]:
    responses = endpoint_responses("not_found", "erased")
    example = EXAMPLES["getRunTranscript"]["stream"]
    responses[200]["content"] = {STREAM: {"schema": {"type": "string"}, "example": example}}
    return responses


@router.get(
    "/v1/runs/{runId}/transcript",
    dependencies=AT_POSITION,
    operation_id="getRunTranscript",
    response_model=TranscriptView,
    summary="What the child said",
    description=(
        "Entries as they came, also while the run goes on; the first one of its own is what it was"
        " told. Tool calls and token counts are shown with `tools=true`. An entry `session` in"
        " front says that those behind it, as many as its `entries`, are those of the requester's"
        " session that the child began with. With `at` it has the entries that had come when that"
        " position was recorded, all of them once the run had ended. To follow a run at work, ask"
        " again with `wait` and with `nextAfter`, else `lastSequence`, as `after`, until `complete`"
        " is true and `nextAfter` is null; or ask with `Accept: text/event-stream`: each entry is"
        " an event `entry` whose `id` is its number, and an event `end` follows the last one. The"
        " stream resumes from `Last-Event-ID`, else `after`, else the first entry."
    ),
    responses=_page_or_stream(),
)
async def get_run_transcript(
    request: Request,
    services: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    tools: Annotated[bool, Query(description="With tool calls and token counts.")] = False,
    last: Annotated[
        int | None,
        Query(ge=1, le=LIMIT_MAX, description="The last entries, so many; not with `after`."),
    ] = None,
    at: AsOfParameter = None,
    wait: Annotated[
        str | None,
        Query(
            max_length=16,
            description=(
                "How long to wait for an entry behind `after`, or for the end of the run, 60 s at"
                f" most: {DURATION_FORMS}. Not with `at` or `last`."
            ),
            examples=["30s"],
        ),
    ] = None,
) -> Response:
    """A page of the transcript, or all of it as a stream."""
    if STREAM in request.headers.get("accept", ""):
        if at is not None or last is not None or wait is not None:
            raise HttpProblem(
                "invalid_request",
                "a stream goes on until the run is over: leave at, last and wait out",
            )
        return await _stream(request, services, caller, runId, after, tools=tools)
    page = await runs.get_run_transcript(
        services, caller, runId, after=after, limit=limit, tools=tools, last=last, at=at, wait=wait
    )
    return view_response(services, page)


async def _stream(
    request: Request, services: Services, caller: Caller, run_id: str, after: int, *, tools: bool
) -> TranscriptStream:
    if services.closing():
        raise HttpProblem("unavailable", "the service is stopping; resume in a moment")
    seen = request.headers.get("last-event-id")
    if seen is not None:
        if not _LAST_EVENT_ID.fullmatch(seen):
            raise HttpProblem(
                "invalid_request", "Last-Event-ID must be the number of an entry; leave it out"
            )
        after = int(seen)
    pages = await runs.follow_transcript(services, caller, run_id, after=after, tools=tools)
    position = services.tail.position
    return TranscriptStream(
        pages,
        headers=position_headers(services, position),
        streams=request.app.state.streams,
    )
