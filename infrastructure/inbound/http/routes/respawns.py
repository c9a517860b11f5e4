"""`POST /v1/runs/{runId}/respawn`."""

from fastapi import APIRouter, Request, Response

from application.commands.context import CommandResponse
from application.commands.control import require_service
from application.context.recorded_scripts import NothingRecorded
from application.log.event_log import Reservation
from application.log.unit_of_work import provenance_of
from application.ports.configurations import PinnedConfiguration
from application.queries.access import (
    Caller,
    require_agent_access,
    require_scope,
    require_session_access,
)
from application.queries.as_of import resolve_as_of
from application.queries.errors import QueryError
from application.queries.runs import readable_run
from application.queries.session_reference import canonical_key, resolve_session_reference
from application.spawn.request import SpawnRequest
from application.spawn.respawn import (
    CannotRespawn,
    read_chosen_revision,
    read_earlier_request,
    require_transcript,
)
from domain.run.state import Run
from infrastructure.inbound.http.middleware.disconnects import presence_check
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    RunInPath,
    traceparent_of,
)
from infrastructure.inbound.http.requests.replies import respond_once
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.routes.spawns import spawn_response
from infrastructure.inbound.http.schemas.answers import AcceptedSpawn
from infrastructure.inbound.http.schemas.respawn import (
    CHANGES,
    RespawnBody,
    requester_named_in,
    respawn_request,
)
from infrastructure.inbound.http.schemas.spawn import REQUESTER_KEY

router = APIRouter(tags=["spawns"])


@router.post(
    "/v1/runs/{runId}/respawn",
    operation_id="respawn",
    response_model=AcceptedSpawn,
    summary="Spawn anew from an earlier run",
    description=(
        "A new spawn with the request of an earlier run, whatever came of that one, and with"
        " changes. It is decided and answered like any other. The new run names the earlier one as"
        " `respawnedFrom`, that one has it among its `respawns`. The session that asked asks again,"
        " unless the changes name another one that the token acts for; that, and `transcript`, need"
        " the scope `content` too."
    ),
    status_code=201,
    responses=endpoint_responses(
        "not_found",
        "spawn_forbidden",
        "spawn_error",
        "session_closed",
        "cannot_respawn",
        "erased",
        *BODY_PROBLEMS,
        *KEY_PROBLEMS,
        status=201,
        description="Accepted and durable",
    ),
    openapi_extra=request_body_schema(RespawnBody),
)
async def respawn(
    request: Request, services: InjectedServices, caller: ByCaller, runId: RunInPath
) -> Response:
    """Take a spawn that is made from an earlier run."""
    require_scope(caller, "spawn")
    require_service(services)
    earlier = await readable_run(
        services, caller, runId, await resolve_as_of(services, caller, None)
    )
    body, raw = await read_body(request, RespawnBody)
    if body.config_revision is not None and not (caller.sees_everything or caller.may("admin")):
        raise QueryError(
            "not_permitted",
            "configRevision is for tokens that act for every session, or with the scope"
            ' "admin"; leave it out',
        )
    if body.transcript is not None:
        require_scope(caller, "content")
    requester = await _requester_key(services, caller, body, earlier)
    require_session_access(caller, requester)
    is_there = presence_check(request.scope)

    async def admit(reservation: Reservation | None) -> CommandResponse:
        try:
            spawn, pinned = await _requested(services, earlier, body, requester)
            if spawn.asserts_agent:
                require_agent_access(caller, spawn.requester_agent_id, pinned.configuration)
            spawned = await services.spawning.spawn(
                spawn, caller.actor, reservation, is_there, traceparent_of(request), pinned=pinned
            )
        except (CannotRespawn, NothingRecorded) as why:
            provenance = provenance_of(earlier, caller.actor)
            await services.work.must_be_new(provenance, reservation, why)
            raise
        return CommandResponse(spawned.answer, spawned.position)

    return await respond_once(request, services, caller, raw, admit, spawn_response)


async def _requester_key(
    services: Services, caller: Caller, body: RespawnBody, earlier: Run
) -> str:
    """The session that asks: the one that did, unless the changes name another."""
    named = requester_named_in(body)
    if named is None:
        return earlier.requester.session_key
    pointer = f"{CHANGES}{REQUESTER_KEY}"
    configuration = services.work.configurations.current().configuration
    key = await resolve_session_reference(services, caller, named, pointer)
    key = key or canonical_key(named, configuration, pointer)
    if key != earlier.requester.session_key:
        # What one session was told would come to another.
        require_scope(caller, "content")
    return key


async def _requested(
    services: Services, earlier: Run, body: RespawnBody, requester_key: str
) -> tuple[SpawnRequest, PinnedConfiguration]:
    """The request, and the revision to decide it under."""
    work, revision = services.work, body.config_revision
    pinned = work.configurations.current()
    if revision is not None:
        pinned = await read_chosen_revision(work, revision)
    recorded = await read_earlier_request(work, earlier)
    if body.transcript is not None:
        await require_transcript(work, services.transcripts, earlier, body.transcript.up_to)
    return respawn_request(recorded, body, pinned.configuration, requester_key), pinned
