"""`POST /v1/spawns`."""

import asyncio
import contextlib

from fastapi import APIRouter, Request, Response

from application.ports.event_log import AlreadyReserved, Answer
from domain.refusals import SessionIsClosed
from infrastructure.inbound.http import examples
from infrastructure.inbound.http.bodies import read_body
from infrastructure.inbound.http.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    problems,
    success,
    takes,
)
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.problems import Problem, problem_response
from infrastructure.inbound.http.replays import first_answer_again
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    answer,
    must,
    must_act_for,
    position_headers,
    reservation_of,
    traceparent_of,
)
from infrastructure.inbound.http.spawn_body import SpawnBody, must_be_served, spawn_request

router = APIRouter(tags=["spawns"])


@router.post(
    "/v1/spawns",
    operation_id="spawn",
    summary="Spawn a sub-agent",
    description=(
        "Decides, gathers the child's context, opens its session and queues its run. Answered when"
        " the session exists; what was decided is durable by then. A caller that goes away cancels"
        " nothing. A refusal is recorded like everything else."
    ),
    status_code=201,
    responses={
        **success(examples.SPAWNED, status=201, description="Accepted and durable"),
        **problems(
            "spawn_forbidden",
            "spawn_error",
            "not_served_yet",
            "session_closed",
            *BODY_PROBLEMS,
            *KEY_PROBLEMS,
        ),
    },
    openapi_extra=takes(SpawnBody, examples.SPAWN, required=True),
)
async def spawn(request: Request, doors: InDoors, caller: ByCaller) -> Response:
    """Take a spawn."""
    must(caller, "spawn")
    if doors.closing():
        raise Problem("unavailable", "the service is stopping; ask again in a moment")
    body, raw = await read_body(request, SpawnBody)
    must_be_served(body)
    asked = spawn_request(body, doors.work.configurations.current().configuration)
    must_act_for(caller, asked.requester_key)
    reservation = reservation_of(request, caller, raw)
    presence = _Presence(request)
    watching = asyncio.create_task(presence.watch())
    try:
        spawned = await doors.spawning.spawn(
            asked, caller.actor, reservation, presence.is_there, traceparent_of(request)
        )
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await first_answer_again(
            reserved, reservation, lambda one, _: _response(doors, request, one)
        )
    except SessionIsClosed as closed:
        raise Problem("session_closed", str(closed)) from None
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return await _response(doors, request, spawned.answer)


class _Presence:
    """Whether the caller still listens."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._gone = False

    def is_there(self) -> bool:
        """False once it was seen to disconnect."""
        return not self._gone

    async def watch(self) -> None:
        """Wait for the disconnect: after the body nothing else can come."""
        while not self._gone:
            message = await self._request.receive()
            self._gone = message["type"] == "http.disconnect"


async def _response(doors: Doors, request: Request, told: Answer) -> Response:
    position = await doors.work.log.head()
    if told.kind == "accepted":
        headers = {"Location": f"/v1/runs/{told.body['runId']}"}
        return answer(doors, told.body, position, status=201, headers=headers)
    code = "spawn_forbidden" if told.kind == "forbidden" else "spawn_error"
    problem = Problem(
        code,
        str(told.body["text"]),
        rule=told.body["rule"],
        runId=told.body["runId"],
        current=told.body["current"],
        limit=told.body["limit"],
        headers=position_headers(doors, position),
    )
    return problem_response(problem, request.scope)
