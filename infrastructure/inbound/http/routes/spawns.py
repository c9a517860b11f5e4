"""`POST /v1/spawns`."""

from typing import Any, cast

from fastapi import APIRouter, Request, Response

from application.commands.context import CommandResponse
from application.commands.spawn import require_requester, require_spawner
from application.log.event_log import Reservation, StoredAnswer
from application.queries.access import Caller
from application.queries.session_reference import resolve_session_reference
from infrastructure.inbound.http.middleware.disconnects import presence_check
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    caller_of,
    json_response,
    services_of,
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
    AcceptedBatch,
    AcceptedBatchOfOne,
    AcceptedSpawn,
)
from infrastructure.inbound.http.schemas.spawn import REQUESTER_KEY, SpawnBody, spawn_request

router = APIRouter(tags=["spawns"])
PATH = "/v1/spawns"


@router.post(
    PATH,
    operation_id="spawn",
    response_model=AcceptedBatchOfOne | AcceptedSpawn | AcceptedBatch,
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
    responses=endpoint_responses(
        "spawn_forbidden",
        "spawn_error",
        "session_closed",
        *BODY_PROBLEMS,
        *KEY_PROBLEMS,
        status=201,
        description="Accepted and durable",
    ),
    openapi_extra=request_body_schema(SpawnBody, required=True),
)
async def spawn(request: Request, services: InjectedServices, caller: ByCaller) -> Response:
    """Take a spawn."""
    return await _answer_spawn(request, services, caller)


async def spawn_directly(request: Request) -> Response:
    """Take a spawn without parameters, past what the framework solves for each request."""
    return await _answer_spawn(request, services_of(request), await caller_of(request))


async def _answer_spawn(request: Request, services: Services, caller: Caller) -> Response:
    require_spawner(services, caller)
    body, raw = await read_body(request, SpawnBody)
    named = await resolve_session_reference(
        services, caller, body.requester.session_key, REQUESTER_KEY
    )
    pinned = services.work.configurations.current()
    spawn = spawn_request(body, pinned.configuration, named)
    require_requester(caller, spawn, pinned.configuration)
    is_there = presence_check(request.scope)

    async def admit(reservation: Reservation | None) -> CommandResponse:
        spawned = await services.spawning.spawn(
            spawn, caller.actor, reservation, is_there, traceparent_of(request), pinned=pinned
        )
        # Recorded after the request came, so behind nothing that was told before: nobody need be
        # asked how far the log goes.
        return CommandResponse(spawned.answer, spawned.position)

    return await respond_once(request, services, caller, raw, admit, spawn_response)


def spawn_response(
    request: Request, services: Services, answer: StoredAnswer, position: int
) -> Response:
    """What the caller of a spawn is answered: where its run is, or the problem of a refusal."""
    if answer.kind != "accepted":
        return refusal_response(request, services, answer, position)
    runs = cast("list[dict[str, Any]]", answer.body["runs"])
    headers = {"Location": f"/v1/runs/{runs[0]['runId']}"}
    return json_response(services, answer.body, position, status=201, headers=headers)
