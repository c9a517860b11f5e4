"""`POST /v1/spawns`."""

from typing import Any, cast

from fastapi import APIRouter, Request, Response

from application.access import Caller
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
from infrastructure.inbound.http.droppable_connection import presence_of
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.refusals import refusal_response
from infrastructure.inbound.http.replays import first_answer_again
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    answer,
    caller_of,
    doors_of,
    must,
    must_act_for,
    must_act_for_agent,
    named_session,
    reservation_of,
    traceparent_of,
)
from infrastructure.inbound.http.spawn_body import (
    REQUESTER_KEY,
    SpawnBody,
    spawn_request,
)

router = APIRouter(tags=["spawns"])

PATH = "/v1/spawns"


@router.post(
    PATH,
    operation_id="spawn",
    summary="Spawn a sub-agent",
    description=(
        "Decides, gathers the child's context, opens its session and queues its run. Answered when"
        " the session exists; what was decided is durable by then. A caller that goes away cancels"
        " nothing. A refusal is recorded like everything else. A list of tasks is decided as one:"
        " its answer has a `batchId`, and all runs in `runs`; a refusal names the run and the task"
        " for which all were refused. The requester may be given by its session id, or as `current`"
        " by a token that acts for one session; what is on record about"
        " it outranks what the request says of it."
    ),
    status_code=201,
    responses={
        **success(examples.SPAWNED, status=201, description="Accepted and durable"),
        **problems(
            "spawn_forbidden",
            "spawn_error",
            "session_closed",
            *BODY_PROBLEMS,
            *KEY_PROBLEMS,
        ),
    },
    openapi_extra=takes(SpawnBody, examples.SPAWN, required=True),
)
async def spawn(request: Request, doors: InDoors, caller: ByCaller) -> Response:
    """Take a spawn."""
    return await _spawned(request, doors, caller)


async def take(request: Request) -> Response:
    """The same for a request without parameters, see `Direct`."""
    return await _spawned(request, doors_of(request), await caller_of(request))


async def _spawned(request: Request, doors: Doors, caller: Caller) -> Response:
    must(caller, "spawn")
    if doors.closing():
        raise Problem("unavailable", "the service is stopping; ask again in a moment")
    body, raw = await read_body(request, SpawnBody)
    named = await named_session(doors, caller, body.requester.session_key, REQUESTER_KEY)
    pinned = doors.work.configurations.current()
    asked = spawn_request(body, pinned.configuration, named)
    must_act_for(caller, asked.requester_key)
    if asked.asserts_agent:
        must_act_for_agent(caller, asked.requester_agent_id, pinned.configuration)
    reservation = reservation_of(request, caller, raw)
    is_there = presence_of(request.scope)
    try:
        spawned = await doors.spawning.spawn(
            asked, caller.actor, reservation, is_there, traceparent_of(request), pinned=pinned
        )
    except AlreadyReserved as reserved:
        assert reservation is not None
        return await first_answer_again(
            reserved, reservation, lambda one, _: _response(doors, request, one, None)
        )
    except SessionIsClosed as closed:
        raise Problem("session_closed", str(closed)) from None
    return await _response(doors, request, spawned.answer, spawned.position)


async def _response(doors: Doors, request: Request, told: Answer, recorded: int | None) -> Response:
    """`recorded` is where it was recorded for this request. That was after it came, so it is behind
    nothing that was told before, and nobody need be asked how far the log goes."""
    position = await doors.work.log.head() if recorded is None else recorded
    if told.kind == "accepted":
        runs = cast("list[dict[str, Any]]", told.body["runs"])
        headers = {"Location": f"/v1/runs/{runs[0]['runId']}"}
        return answer(doors, told.body, position, status=201, headers=headers)
    return refusal_response(doors, request, told, position)
