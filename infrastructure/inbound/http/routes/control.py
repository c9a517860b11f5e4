"""Commands about runs and sessions: stop them, send them messages."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, field_validator

from application.commands.context import CommandResponse
from application.commands.control import (
    addressed_run,
    controlled_run,
    controlled_session,
    require_control,
    require_service,
    yielding_session,
)
from application.log.event_log import Reservation, StoredAnswer
from application.queries.access import Caller, require_scope
from application.queries.operation import Body
from application.queries.session_reference import resolve_session_key
from application.session.preamble import PreambleWriter
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    KeyInPath,
    RunInPath,
    json_response,
    traceparent_of,
)
from infrastructure.inbound.http.requests.replies import refusal_response, respond_once
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.schemas.answers import (
    ContinuedAnswer,
    FinishedAnswer,
    PreambleAnswer,
    QueuedAnswer,
    SessionStoppedAnswer,
    SteeredAnswer,
    StoppedAnswer,
    YieldedAnswer,
)

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
    await require_control(services, caller, runId)
    body, raw = await read_body(request, StopBody)
    run = await controlled_run(services, caller, runId, "stop")

    async def stop(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(
            await services.stopping.stop(run, caller.actor, body.reason, reservation)
        )

    return await respond_once(request, services, caller, raw, stop)


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
    session_key = await resolve_session_key(services, caller, key)
    await require_control(services, caller, session_key)
    body, raw = await read_body(request, StopBody)
    session = await controlled_session(services, caller, session_key, "stop")

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
        Field(
            description=(
                "`send` waits for the run at work, if there is one; `steer` ends it and goes on"
                " with the message in its place (4000 characters at most, one in 2 s)."
            )
        ),
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
    response_model=ContinuedAnswer | QueuedAnswer | SteeredAnswer | FinishedAnswer,
    summary="Go on with a session",
    description=(
        "A message to the session of this run, whichever of its runs that is: it becomes a new run"
        " of the session, which `continues` its last one. While that one is at work the message"
        " waits (202, `queued`): 20 of them at most, taken in their order, each once the run"
        " before it is announced. With mode `steer` the run at work is ended and not announced, and"
        " the new one takes its place (202, `accepted`); one that is over stays as it is (200,"
        " `done`). The session is open until it is put away, one of mode `session` until it is"
        " stopped. The new run of a session whose last one was announced takes a place among the"
        " children of the session that spawned it. It works in the same workspace and by the"
        " configuration of now; no context script runs again. A refusal is recorded."
    ),
    status_code=201,
    responses={
        200: {"description": "Nothing to steer: the run is over", "model": FinishedAnswer},
        202: {"description": "It waits, or replaces", "model": QueuedAnswer | SteeredAnswer},
        **endpoint_responses(
            "not_found",
            "run_active",
            "queue_full",
            "steered_too_soon",
            "session_closed",
            "no_session",
            "spawn_forbidden",
            "spawn_error",
            "erased",
            *BODY_PROBLEMS,
            *KEY_PROBLEMS,
            status=201,
            description="Accepted and durable",
        ),
    },
    openapi_extra=request_body_schema(MessageBody, required=True),
)
async def send_message(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Take a message."""
    await require_control(services, caller, runId)
    require_service(services)
    body, raw = await read_body(request, MessageBody)
    steers = body.mode == "steer"
    run = await addressed_run(services, caller, runId, body.message, steers=steers)

    trace = traceparent_of(request)

    async def send(reservation: Reservation | None) -> CommandResponse:
        continuing = services.continuing
        submit = continuing.steer if steers else continuing.send
        sent = await submit(run, body.message, caller.actor, reservation, trace)
        return CommandResponse(sent.answer, sent.position)

    return await respond_once(request, services, caller, raw, send, _message_response)


_STATUS_OF_ANSWERS = {"continued": 201, "queued": 202, "steered": 202, "finished": 200}


def _message_response(
    request: Request, services: Services, answer: StoredAnswer, position: int
) -> Response:
    status = _STATUS_OF_ANSWERS.get(answer.kind)
    if status is None:
        return refusal_response(request, services, answer, position)
    headers = {"Location": f"/v1/runs/{answer.body['runId']}"}
    return json_response(services, answer.body, position, status=status, headers=headers)


class PreambleBody(Body):
    """What its requester hands over to the session's later runs."""

    preamble: str


@router.put(
    "/v1/sessions/{key}/preamble",
    operation_id="writePreamble",
    response_model=PreambleAnswer,
    summary="Change the preamble of a session",
    description=(
        "What stands in front of the system prompt of the session's later runs, in the place of the"
        " `contextPreamble` of its spawn, cut as that is. The run at work keeps what it began with."
        " A text without anything to be seen takes it away."
    ),
    responses=endpoint_responses(
        "not_found", "no_session", "session_closed", "erased", *BODY_PROBLEMS, *KEY_PROBLEMS
    ),
    openapi_extra=request_body_schema(PreambleBody, required=True),
)
async def write_preamble(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Write a preamble."""
    require_scope(caller, "control")
    body, raw = await read_body(request, PreambleBody)
    return await _write_preamble(request, services, caller, key, body.preamble, raw)


@router.delete(
    "/v1/sessions/{key}/preamble",
    operation_id="clearPreamble",
    response_model=PreambleAnswer,
    summary="Take the preamble of a session away",
    description="Nothing stands in front of the system prompt of the session's later runs.",
    responses=endpoint_responses("not_found", "no_session", "session_closed", "erased"),
)
async def clear_preamble(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Clear a preamble."""
    require_scope(caller, "control")
    return await _write_preamble(request, services, caller, key, None, b"")


async def _write_preamble(
    request: Request,
    services: Services,
    caller: Caller,
    key: str,
    text: str | None,
    raw: bytes,
) -> Response:
    session_key = await resolve_session_key(services, caller, key)
    session = await controlled_session(services, caller, session_key, "write the preamble of")
    writer = PreambleWriter(services.work)

    async def write(reservation: Reservation | None) -> CommandResponse:
        return CommandResponse(await writer.write(session, text, caller.actor, reservation))

    return await respond_once(request, services, caller, raw, write)


class YieldBody(Body):
    """What is said with it."""

    message: Annotated[
        str | None, Field(max_length=2000, description="Said again in the answer.")
    ] = None


@router.post(
    "/v1/sessions/{key}/yield",
    operation_id="yieldSession",
    response_model=YieldedAnswer,
    summary="End a turn and wait for sub-agents",
    description=(
        "The run at work in this session, which is to end now and is ended five seconds later, is"
        " not announced. What its sub-agents report, each when it is done and those of a list of"
        " tasks together, is the message of a new run of the session, which takes its place."
        " Without a sub-agent that is at work, or whose report the session was not given, there is"
        " nothing to wait for. Repeating it changes nothing."
    ),
    responses=endpoint_responses("not_found", "cannot_yield", *BODY_PROBLEMS, *KEY_PROBLEMS),
    openapi_extra=request_body_schema(YieldBody),
)
async def yield_session(
    request: Request, services: InjectedServices, caller: ByCaller, key: KeyInPath
) -> Response:
    """Yield."""
    require_scope(caller, "spawn")
    body, raw = await read_body(request, YieldBody)
    session = await yielding_session(services, caller, key)

    async def yield_turn(reservation: Reservation | None) -> CommandResponse:
        sent = await services.continuing.yield_turn(
            session, body.message, caller.actor, reservation
        )
        return CommandResponse(sent.answer, sent.position)

    return await respond_once(request, services, caller, raw, yield_turn)
