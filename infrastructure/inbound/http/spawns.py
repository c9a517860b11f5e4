"""`POST /v1/spawns`."""

import asyncio
import contextlib
from typing import Any

from fastapi import APIRouter, Request, Response

from application.ports.event_log import AlreadyReserved, Answer
from domain.refusals import SessionIsClosed
from infrastructure.inbound.http.bodies import read_body
from infrastructure.inbound.http.described import problems, success
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

_EXAMPLE: dict[str, Any] = {
    "status": "accepted",
    "runs": [{"runId": "3f0e…", "childSessionKey": "agent:counter:subagent:9b1d…"}],
    "runId": "3f0e…",
    "childSessionKey": "agent:counter:subagent:9b1d…",
    "sessionId": "77aa…",
    "label": "counter",
    "mode": "run",
    "note": "Auto-announce is push-based. …",
    "modelApplied": True,
    "attachments": None,
    "warnings": [],
}


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
        **success(_EXAMPLE, status=201, description="Accepted and durable"),
        **problems(
            "spawn_forbidden",
            "spawn_error",
            "invalid_request",
            "malformed_json",
            "not_json",
            "not_served_yet",
            "too_large",
            "session_closed",
            "idempotency_in_flight",
            "idempotency_key_reused",
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": "#/components/schemas/SpawnBody"},
                    "example": {
                        "requester": {"sessionKey": "agent:main:main"},
                        "task": "Count the words of this sentence",
                        "agentId": "counter",
                        "label": "counter",
                    },
                }
            },
        }
    },
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
