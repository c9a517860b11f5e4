"""What is kept of a run: its events, its prompt, its transcript."""

import hashlib
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from application.log.envelope import RecordedEvent
from domain.run.events import RunStarted
from domain.values.record import run_stream
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.requests.as_of import resolve_as_of
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    RunInPath,
    json_response,
    readable_run,
    require_scope,
    visible_run,
)
from infrastructure.inbound.http.requests.paging import (
    LIMIT_DEFAULT,
    LIMIT_MAX,
    After,
    LimitParameter,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import problem_responses, success_response
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.event import event_bodies

router = APIRouter(tags=["runs"])
SPOKEN_KINDS = ("session", "message", "progress", "result", "text")


@router.get(
    "/v1/runs/{runId}/events",
    operation_id="listRunEvents",
    summary="The events of a run",
    description=(
        "In order, those behind `after`, with their envelopes. Free texts are references. Only why"
        " something could not be undone is told, as `texts.error` of a `StepUndoFailed`, and why"
        " context scripts failed, as `texts.errors` of `ScriptsResolved`, by their ids; both to a"
        " token with the scope `content`."
    ),
    responses={
        **success_response(spawns_and_runs.RUN_EVENTS),
        **problem_responses("not_found"),
    },
)
async def list_run_events(
    doors: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_MAX,
) -> Response:
    """A page of the events of one run's own stream."""
    require_scope(caller, "read")
    now = await resolve_as_of(doors, None)
    run = await visible_run(doors, caller, runId, now)
    events = await _events_of(doors, run.run_id, after=after, until=now.position, wanted=limit + 1)
    full = caller.may("content") and await doors.access.covers_run(caller, run)
    items = await event_bodies(events[:limit], doors.work.contents if full else None)
    following = items[-1]["position"] if len(events) > limit else None
    return json_response(doors, {"items": items, "nextAfter": following}, now.position)


async def _events_of(
    doors: Services, run_id: UUID, *, after: int, until: int, wanted: int
) -> list[RecordedEvent]:
    """Events of the run's own stream: what is about it may stand in other streams too."""
    found: list[RecordedEvent] = []
    while len(found) < wanted:
        page = await doors.work.log.read(after=after, limit=LIMIT_MAX, run_id=run_id, until=until)
        found += [one for one in page if one.envelope.stream == run_stream(run_id)]
        if len(page) < LIMIT_MAX:
            break
        after = page[-1].envelope.position
    return found


@router.get(
    "/v1/runs/{runId}/prompt",
    operation_id="getRunPrompt",
    summary="The prompt as the child got it",
    description=(
        "Both texts, and parts that cover every byte of them: where each comes from, its UTF-8"
        " offsets within its text, and the SHA-256 of its bytes."
    ),
    responses={
        **success_response(spawns_and_runs.PROMPT),
        **problem_responses("not_found", "not_started", "erased"),
    },
)
async def get_run_prompt(doors: InjectedServices, caller: ByCaller, runId: RunInPath) -> Response:
    """The prompt."""
    require_scope(caller, "content")
    now = await resolve_as_of(doors, None)
    run = await readable_run(doors, caller, runId, now)
    if run.system_prompt is None or run.message is None:
        raise HttpProblem("not_started", "the run has not started, so it has no prompt yet")
    texts = await doors.work.contents.texts((run.system_prompt, run.message))
    system_prompt, message = texts.get(run.system_prompt.id), texts.get(run.message.id)
    if system_prompt is None or message is None:
        raise HttpProblem("erased", "the prompt of this run was erased")
    events = await doors.work.log.read(limit=1, run_id=run.run_id, types=("RunStarted",))
    started = events[0].event
    assert isinstance(started, RunStarted)
    data = {"systemPrompt": system_prompt.encode(), "message": message.encode()}
    parts = [
        {
            "of": part.of,
            "source": part.source,
            "start": part.start,
            "end": part.end,
            "sha256": hashlib.sha256(data[part.of][part.start : part.end]).hexdigest(),
        }
        for part in started.parts
    ]
    body = {"systemPrompt": system_prompt, "message": message, "parts": parts}
    return json_response(doors, body, now.position)


@router.get(
    "/v1/runs/{runId}/transcript",
    operation_id="getRunTranscript",
    summary="What the child said",
    description=(
        "Entries as they came, also while the run goes on. Tool calls and token counts are"
        " shown with `tools=true`. An entry `session` in front says that those behind it, as many"
        " as its `entries`, are those of the requester's session that the child began with."
    ),
    responses={
        **success_response(spawns_and_runs.TRANSCRIPT),
        **problem_responses("not_found"),
    },
)
async def get_run_transcript(
    doors: InjectedServices,
    caller: ByCaller,
    runId: RunInPath,
    after: After = 0,
    limit: LimitParameter = LIMIT_DEFAULT,
    tools: Annotated[bool, Query(description="With tool calls and token counts.")] = False,
) -> Response:
    """A page of the transcript."""
    require_scope(caller, "content")
    now = await resolve_as_of(doors, None)
    run = await readable_run(doors, caller, runId, now)
    entries = await doors.transcripts.read(
        run.run_id, after=after, limit=limit + 1, kinds=None if tools else SPOKEN_KINDS
    )
    if run.transcript is not None:
        # What a replaced holder may have written after the seal is not part of the transcript.
        entries = [one for one in entries if one.sequence <= run.transcript.count]
    items: list[dict[str, Any]] = [
        {
            "sequence": one.sequence,
            "recordedAt": one.recorded_at,
            "kind": one.kind,
            "body": one.body,
        }
        for one in entries[:limit]
    ]
    more = len(entries) > limit
    body = {"items": items, "nextAfter": items[-1]["sequence"] if more else None}
    return json_response(doors, body, now.position)
