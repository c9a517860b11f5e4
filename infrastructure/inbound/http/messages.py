"""`POST /v1/runs/{runId}/messages`."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, field_validator

from application.ports.event_log import AlreadyReserved, Answer
from domain.continuation import NoSession, RunIsActive
from domain.refusals import SessionIsClosed
from infrastructure.inbound.http import examples
from infrastructure.inbound.http.batch_body import TASK_BYTES_MAX
from infrastructure.inbound.http.bodies import Body, read_body
from infrastructure.inbound.http.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problems,
    success,
    takes,
)
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.moments import as_of
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.refusals import refusal_response
from infrastructure.inbound.http.replays import first_answer_again
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    RunInPath,
    answer,
    must,
    reservation_of,
    traceparent_of,
    visible_run,
)

router = APIRouter(tags=["control"])


class MessageBody(Body):
    """What is said to the session."""

    message: str
    mode: Annotated[
        Literal["send", "steer"],
        Field(description="`send` waits its turn: the session's run has to be over."),
    ] = "send"

    @field_validator("message")
    @classmethod
    def _said(cls, message: str) -> str:
        if not message.strip():
            raise ValueError("must say something")
        return message


@router.post(
    "/v1/runs/{runId}/messages",
    operation_id="sendMessage",
    summary="Go on with a session",
    description=(
        "A message to the session of this run, whichever of its runs that is: it becomes a new run"
        " of the session, which `continues` its last one. That has to be announced; the session is"
        " open until it is put away, one of mode `session` until it is stopped. The new run takes a"
        " place among the children of the session that spawned it, in the same workspace and by the"
        " configuration of now; no context script runs again. A refusal is recorded."
    ),
    status_code=201,
    responses={
        **success(examples.CONTINUED, status=201, description="Accepted and durable"),
        **problems(
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
        ),
    },
    openapi_extra=takes(MessageBody, {"message": "And the second chapter?"}, required=True),
)
async def send_message(
    request: Request, doors: InDoors, caller: ByCaller, runId: RunInPath
) -> Response:
    """Take a message."""
    must(caller, "control")
    if doors.closing():
        raise Problem("unavailable", "the service is stopping; ask again in a moment")
    body, raw = await read_body(request, MessageBody)
    _must_be_served(body)
    run = await visible_run(doors, caller, runId, await as_of(doors, None))
    if not await doors.access.covers_run(caller, run) or caller.run_id == run.run_id:
        raise Problem("not_permitted", "this token may send to the descendants of its session only")
    reservation = reservation_of(request, caller, raw)
    try:
        sent = await doors.continuing.send(
            run, body.message, caller.actor, reservation, traceparent_of(request)
        )
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await first_answer_again(
            reserved, reservation, lambda one, _: _told_before(doors, request, one)
        )
    except RunIsActive as active:
        raise Problem("run_active", str(active), headers={"Retry-After": "1"}) from None
    except NoSession as none:
        raise Problem("no_session", str(none)) from None
    except SessionIsClosed as closed:
        raise Problem("session_closed", str(closed)) from None
    return _response(doors, request, sent.answer, sent.position)


def _must_be_served(body: MessageBody) -> None:
    if body.mode == "steer":
        raise Problem(
            "not_served_yet",
            "this release does not serve /mode steer; wait for the run, or stop it and spawn again",
            errors=[{"pointer": "/mode", "detail": "not served yet"}],
        )
    if len(body.message.encode()) > TASK_BYTES_MAX:
        raise Problem("too_large", f"a message may have {TASK_BYTES_MAX} bytes at most")


async def _told_before(doors: Doors, request: Request, told: Answer) -> Response:
    return _response(doors, request, told, await doors.work.log.head())


def _response(doors: Doors, request: Request, told: Answer, position: int) -> Response:
    if told.kind != "continued":
        return refusal_response(doors, request, told, position)
    headers = {"Location": f"/v1/runs/{told.body['runId']}"}
    return answer(doors, told.body, position, status=201, headers=headers)
