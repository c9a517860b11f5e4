"""Commands about runs and sessions: stop them, send them messages."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, field_validator

from application.log.event_log import Reservation, StoredAnswer
from application.queries.access import Caller, require_scope
from application.queries.as_of import resolve_as_of
from application.queries.runs import visible_run
from application.queries.session_reference import resolve_session_key
from domain.run.state import Run
from infrastructure.inbound.http.requests.bodies import Body, read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    KeyInPath,
    RunInPath,
    json_response,
    traceparent_of,
)
from infrastructure.inbound.http.requests.replies import (
    CommandResponse,
    refusal_response,
    respond_once,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.answers import (
    ContinuedAnswer,
    SessionStoppedAnswer,
    StoppedAnswer,
)
from infrastructure.inbound.http.schemas.spawn import TASK_BYTES_MAX

router = APIRouter(tags=["control"])


class StopBody(Body):
    """Why."""

    reason: Annotated[str, Field(max_length=2000)] | None = None


@router.post(
    "/v1/runs/{runId}/stop",
    operation_id="stopRun",
    response_model=StoppedAnswer,
    summary="Stop a run and its descendants",
    description=(
        "A run that is prepared or queued is over at once; one that executes is over when its"
        " processes are gone: wait for it with `GET /v1/runs/{runId}?wait=30s&until=ended`."
        " Stopping one that is over changes nothing."
    ),
    responses=endpoint_responses("not_found", *BODY_PROBLEMS, *KEY_PROBLEMS),
    openapi_extra=request_body_schema(StopBody),
)
async def stop_run(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Stop a run."""
    require_scope(caller, "control")
    body, raw = await read_body(request, StopBody)
    run = await _controlled_run(services, caller, runId, "stop")

    async def stop(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(
            await services.stopping.stop(run, caller.actor, body.reason, reservation)
        )

    return await respond_once(request, services, caller, raw, stop)


async def _controlled_run(services: Services, caller: Caller, run_id: str, verb: str) -> Run:
    """The run, if it is below the session of the caller; 403 for the caller's own."""
    run = await visible_run(services, caller, run_id, await resolve_as_of(services, None))
    if not await services.access.covers_run(caller, run) or caller.run_id == run.run_id:
        raise _only_descendants(verb)
    return run


def _only_descendants(verb: str) -> HttpProblem:
    return HttpProblem(
        "not_permitted", f"this token may {verb} the descendants of its session only"
    )


@router.post(
    "/v1/sessions/{key}/stop",
    operation_id="stopSession",
    response_model=SessionStoppedAnswer,
    summary="Stop a session's run and all below it",
    description=(
        "Its own run, if it has one that is not over, and all its descendants. A child that stays"
        " open after its runs (mode `session`) is closed by it: it takes no more messages, and is"
        " put away with all its runs once the last one is announced. Repeating it changes nothing."
    ),
    responses=endpoint_responses("not_found", *BODY_PROBLEMS, *KEY_PROBLEMS),
    openapi_extra=request_body_schema(StopBody),
)
async def stop_session(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Stop a session."""
    require_scope(caller, "control")
    body, raw = await read_body(request, StopBody)
    session_key = await resolve_session_key(services, caller, key)
    session = await services.work.registry.session(session_key)
    if session is None or not await services.access.covers_session(caller, session_key):
        raise HttpProblem("not_found", "there is no such session on record")
    if caller.run_id is not None and caller.run_id == session.run_id:
        raise _only_descendants("stop")

    async def stop(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(
            await services.stopping.stop_session(session, caller.actor, body.reason, reservation)
        )

    return await respond_once(request, services, caller, raw, stop)


class MessageBody(Body):
    """What is said to the session."""

    message: str
    mode: Annotated[
        Literal["send", "steer"],
        Field(description="`send` waits its turn: the session's run has to be over."),
    ] = "send"

    @field_validator("message")
    @classmethod
    def _check_message(cls, message: str) -> str:
        if not message.strip():
            raise ValueError("must say something")
        return message


@router.post(
    "/v1/runs/{runId}/messages",
    operation_id="sendMessage",
    response_model=ContinuedAnswer,
    summary="Go on with a session",
    description=(
        "A message to the session of this run, whichever of its runs that is: it becomes a new run"
        " of the session, which `continues` its last one. That has to be announced; the session is"
        " open until it is put away, one of mode `session` until it is stopped. The new run takes a"
        " place among the children of the session that spawned it, in the same workspace and by the"
        " configuration of now; no context script runs again. A refusal is recorded."
    ),
    status_code=201,
    responses=endpoint_responses(
        "not_found",
        "run_active",
        "session_closed",
        "no_session",
        "spawn_forbidden",
        "spawn_error",
        "not_served_yet",
        "erased",
        *BODY_PROBLEMS,
        *KEY_PROBLEMS,
        status=201,
        description="Accepted and durable",
    ),
    openapi_extra=request_body_schema(MessageBody, required=True),
)
async def send_message(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Take a message."""
    require_scope(caller, "control")
    if services.closing():
        raise HttpProblem("unavailable", "the service is stopping; ask again in a moment")
    body, raw = await read_body(request, MessageBody)
    _require_served_mode(body)
    run = await _controlled_run(services, caller, runId, "send to")

    async def send(reservation: Reservation | None) -> CommandResponse:
        sent = await services.continuing.send(
            run, body.message, caller.actor, reservation, traceparent_of(request)
        )
        return CommandResponse(sent.answer, sent.position)

    return await respond_once(request, services, caller, raw, send, _message_response)


def _require_served_mode(body: MessageBody) -> None:
    if body.mode == "steer":
        raise HttpProblem(
            "not_served_yet",
            "this release does not serve /mode steer; wait for the run, or stop it and spawn again",
            errors=[{"pointer": "/mode", "detail": "not served yet"}],
        )
    if len(body.message.encode()) > TASK_BYTES_MAX:
        raise HttpProblem("too_large", f"a message may have {TASK_BYTES_MAX} bytes at most")


def _message_response(
    request: Request, services: Services, answer: StoredAnswer, position: int
) -> Response:
    if answer.kind != "continued":
        return refusal_response(request, services, answer, position)
    headers = {"Location": f"/v1/runs/{answer.body['runId']}"}
    return json_response(services, answer.body, position, status=201, headers=headers)
