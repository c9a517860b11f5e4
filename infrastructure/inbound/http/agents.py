"""`GET /v1/agents` and `GET /v1/lanes`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from application.access import Caller
from application.ports.registry import LaneState
from domain.admission import allowed_agents
from domain.configuration.configuration import Configuration
from domain.run.state import Run
from domain.session_key import agent_id_of
from infrastructure.inbound.http import examples
from infrastructure.inbound.http.described import problems, success
from infrastructure.inbound.http.doors import Doors
from infrastructure.inbound.http.moments import At, as_of
from infrastructure.inbound.http.paging import LIMIT_MAX, Limit
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    answer,
    canonical_key,
    must,
)

router = APIRouter(tags=["agents"])


@router.get(
    "/v1/agents",
    operation_id="listAgents",
    summary="The agents a requester may spawn",
    description=(
        "The requester's own agent first when it is allowed, the others sorted. The requester"
        " need not be on record; it must be a session that the token covers."
    ),
    responses={
        **success(examples.AGENTS),
        **problems("not_found"),
    },
)
async def list_agents(
    doors: InDoors,
    caller: ByCaller,
    requester: Annotated[
        str, Query(max_length=2048, description="The requester's session key, in any spelling.")
    ] = "main",
) -> Response:
    """The agents."""
    must(caller, "read")
    key = canonical_key(doors, requester)
    if not await doors.access.covers_session(caller, key):
        raise Problem(
            "not_found", "there is no such session for this token; give one of its own as requester"
        )
    configuration = doors.work.configurations.current().configuration
    agent_id = agent_id_of(key)
    allowed = allowed_agents(agent_id, configuration.subagents_for(agent_id).allow_agents)
    names = configuration.agent_ids() if allowed is None else allowed
    ordered = sorted(set(names), key=lambda name: (name != agent_id, name))
    body = {
        "requester": agent_id,
        "allowAny": allowed is None,
        "agents": [_agent(name, configuration) for name in ordered],
    }
    return answer(doors, body, (await as_of(doors, None)).position)


def _agent(agent_id: str, configuration: Configuration) -> dict[str, Any]:
    agent = configuration.agent(agent_id)
    runtime = configuration.runtime_for(agent_id) if agent else None
    return {
        "id": agent_id,
        "name": agent.name if agent else None,
        "configured": agent is not None,
        "model": configuration.model_of(agent_id),
        "runtime": runtime.type if runtime else None,
    }


@router.get(
    "/v1/lanes",
    operation_id="listLanes",
    summary="The lanes",
    description=(
        "Width, who holds a slot, who waits in which place and for what. The width counts per"
        " depth, so that a parent that waits never starves its child."
    ),
    responses={
        **success(examples.LANES),
        **problems("not_served_yet"),
    },
)
async def list_lanes(
    doors: InDoors, caller: ByCaller, limit: Limit = LIMIT_MAX, at: At = None
) -> Response:
    """The lanes that have somebody in them. There is one a depth, so one page holds them all."""
    must(caller, "read")
    if at is not None:
        raise Problem(
            "not_served_yet",
            "this release shows lanes as they are now; leave at out",
            errors=({"pointer": "/query/at", "detail": "not served yet"},),
        )
    configuration = doors.work.configurations.current().configuration
    width = configuration.subagent_defaults.max_concurrent
    position, lanes = await doors.work.registry.lanes()
    body = {"items": [await _lane(doors, caller, lane, width) for lane in lanes[:limit]]}
    return answer(doors, body, position)


async def _lane(doors: Doors, caller: Caller, lane: LaneState, width: int) -> dict[str, Any]:
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


async def _member(doors: Doors, caller: Caller, run: Run) -> dict[str, Any]:
    """Which run it is; a run that the caller may not see only takes its place."""
    if not await doors.access.covers_run(caller, run):
        return {"runId": None, "label": None}
    return {"runId": run.run_id, "label": run.label}
