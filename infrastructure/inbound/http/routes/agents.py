"""`GET /v1/agents` and `GET /v1/lanes`."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from application.ports.registry import LaneState
from application.queries.access import Caller
from application.queries.agents import listed_agents
from domain.run.state import Run
from domain.values.session_key import agent_id_of
from infrastructure.inbound.http.examples import spawns_and_runs
from infrastructure.inbound.http.requests.as_of import AsOfParameter, resolve_as_of
from infrastructure.inbound.http.requests.caller import (
    ByCaller,
    InjectedServices,
    json_response,
    require_scope,
    resolve_session_key,
)
from infrastructure.inbound.http.requests.paging import LIMIT_MAX, LimitParameter
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import problem_responses, success_response
from infrastructure.inbound.http.responses.problems import HttpProblem

router = APIRouter(tags=["agents"])


@router.get(
    "/v1/agents",
    operation_id="listAgents",
    summary="The agents a requester may spawn",
    description=(
        "The requester's own agent first when it is allowed, the others sorted. The requester"
        " need not be on record; when it is, its agent is the one on record. It must be a session"
        " that the token covers."
    ),
    responses={
        **success_response(spawns_and_runs.AGENTS),
        **problem_responses("not_found"),
    },
)
async def list_agents(
    doors: InjectedServices,
    caller: ByCaller,
    requester: Annotated[
        str,
        Query(
            max_length=2048,
            description=(
                "The requester: its session key in any spelling, its session id, or `current`."
            ),
        ),
    ] = "main",
) -> Response:
    """The agents."""
    require_scope(caller, "read")
    key = await resolve_session_key(doors, caller, requester, pointer="/query/requester")
    if not await doors.access.covers_session(caller, key):
        raise HttpProblem(
            "not_found", "there is no such session for this token; give one of its own as requester"
        )
    session = await doors.work.registry.session(key)
    listing = listed_agents(
        doors.work.configurations.current().configuration,
        session.agent_id if session is not None else agent_id_of(key),
    )
    body = {
        "requester": listing.requester,
        "allowAny": listing.allow_any,
        "agents": [asdict(agent) for agent in listing.agents],
    }
    return json_response(doors, body, (await resolve_as_of(doors, None)).position)


@router.get(
    "/v1/lanes",
    operation_id="listLanes",
    summary="The lanes",
    description=(
        "Width, who holds a slot, who waits in which place and for what. The width counts per"
        " depth, so that a parent that waits never starves its child."
    ),
    responses={
        **success_response(spawns_and_runs.LANES),
        **problem_responses("not_served_yet"),
    },
)
async def list_lanes(
    doors: InjectedServices,
    caller: ByCaller,
    limit: LimitParameter = LIMIT_MAX,
    at: AsOfParameter = None,
) -> Response:
    """The lanes that have somebody in them. There is one a depth, so one page holds them all."""
    require_scope(caller, "read")
    if at is not None:
        raise HttpProblem(
            "not_served_yet",
            "this release shows lanes as they are now; leave at out",
            errors=({"pointer": "/query/at", "detail": "not served yet"},),
        )
    configuration = doors.work.configurations.current().configuration
    width = configuration.subagent_defaults.max_concurrent
    position, lanes = await doors.work.registry.lanes()
    body = {"items": [await _lane(doors, caller, lane, width) for lane in lanes[:limit]]}
    return json_response(doors, body, position)


async def _lane(doors: Services, caller: Caller, lane: LaneState, width: int) -> dict[str, Any]:
    full = len(lane.running) >= width
    running = [
        {
            **await _member(doors, caller, run),
            "holder": run.holder if caller.sees_everything else None,
        }
        for run in lane.running
    ]
    queued = [
        {
            **await _member(doors, caller, run),
            "place": place,
            "waitsFor": "a slot" if full else "to be claimed",
        }
        for place, run in enumerate(lane.queued, start=1)
    ]
    return {
        "lane": lane.lane,
        "depth": lane.depth,
        "width": width,
        "running": running,
        "queued": queued,
    }


async def _member(doors: Services, caller: Caller, run: Run) -> dict[str, Any]:
    """Which run it is; a run that the caller may not see only takes its place."""
    if not await doors.access.covers_run(caller, run):
        return {"runId": None, "label": None}
    return {"runId": run.run_id, "label": run.label}
