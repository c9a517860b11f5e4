"""What is kept of a run: its events, its prompt, its transcript, how it was decided."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from application.queries import explain, runs
from application.queries.access import Caller
from application.queries.explain import ExplanationView
from application.queries.paging import LIMIT_DEFAULT, LIMIT_MAX
from application.queries.views.event import RunEventListView
from application.queries.views.run_records import PromptView, TranscriptView
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
    "/v1/runs/{runId}/events",
    dependencies=AT_POSITION,
    operation_id="listRunEvents",
    response_model=RunEventListView,
    summary="The events of a run",
    description=(
        "In order, those behind `after`, with their envelopes. Free texts are references. Only why"
        " something could not be undone is told, as `texts.error` of a `StepUndoFailed`, and why"
        " context scripts failed, as `texts.errors` of `ScriptsResolved`, by their ids; both to a"
        " token with the scope `content`."
    ),
    responses=endpoint_responses("not_found"),
)
async def list_run_events(
    services: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_MAX,
    at: AsOfParameter = None,
) -> Response:
    """A page of the events of one run's own stream."""
    page = await runs.list_run_events(services, caller, runId, after=after, limit=limit, at=at)
    return view_response(services, page)


@router.get(
    "/v1/runs/{runId}/prompt",
    dependencies=AT_POSITION,
    operation_id="getRunPrompt",
    response_model=PromptView,
    summary="The prompt as the child got it",
    description=(
        "Both texts, and parts that cover every byte of them: where each comes from, its UTF-8"
        " offsets within its text, and the SHA-256 of its bytes."
    ),
    responses=endpoint_responses("not_found", "not_started", "erased"),
)
async def get_run_prompt(
    services: InjectedServices, caller: ByCaller, runId: RunInPath, at: AsOfParameter = None
) -> Response:
    """The prompt."""
    return view_response(services, await runs.get_run_prompt(services, caller, runId, at=at))


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


@router.get(
    "/v1/runs/{runId}/explain",
    dependencies=AT_POSITION,
    operation_id="explainRun",
    response_model=ExplanationView,
    summary="How a spawn, or a message, was decided",
    description=(
        "Every rule in the order in which they are judged: what it compared (`compared`, and in"
        " words `text`), its `result`, and the position and configuration revision under which that"
        " was recorded. `passed` did not refuse the spawn, `refused` did; `not_judged` stands for"
        " rules to which the decision did not come, or not yet, and `not_recorded` for what the"
        " release that decided did not record. A step that made something for the child stands at"
        " the event that says so. `refused` is the rule that refused, with the text"
        " that the caller was told, or null. `given` holds what was asked for and is kept beside"
        " the log: a workspace, and words that are no name. `configured` of the tools and"
        " `workspaceRoots` are what the revision says, as its file wrote it; null when it cannot"
        " be read any more. Of a run that goes on with a session after a message the only rule of"
        " admission is `active_children`, no script runs, and the workspace is `kept`. Nothing is"
        " judged again."
    ),
    responses=endpoint_responses("not_found"),
)
async def explain_run(
    services: InjectedServices, caller: ByCaller, runId: RunInPath, at: AsOfParameter = None
) -> Response:
    """The decisions about one run, as far as they were made then."""
    return view_response(services, await explain.explain_run(services, caller, runId, at=at))
