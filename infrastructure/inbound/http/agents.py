"""`GET /v1/agents` and `GET /v1/lanes`."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from application.ports.registry import LaneState
from domain.admission import allowed_agents
from domain.configuration.configuration import Configuration
from domain.session_key import agent_id_of
from infrastructure.inbound.http.described import problems, success
from infrastructure.inbound.http.problems import Problem
from infrastructure.inbound.http.requests import (
    ByCaller,
    InDoors,
    answer,
    as_of,
    canonical_key,
    must,
)

router = APIRouter(tags=["agents"])


@router.get(
    "/v1/agents",
    operation_id="listAgents",
    summary="The agents a requester may spawn",
    description="The requester's own agent first when it is allowed, the others sorted.",
    responses={
        **success({"requester": "main", "allowAny": False, "agents": [{"id": "main"}]}),
        **problems("invalid_request"),
    },
)
async def list_agents(
    doors: InDoors,
    caller: ByCaller,
    requester: Annotated[str, Query(max_length=2048)] = "main",
) -> Response:
    """The agents."""
    must(caller, "read")
    key = canonical_key(doors, requester)
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
        **success({"items": [{"lane": "subagent", "depth": 1, "width": 8}]}),
        **problems("invalid_request"),
    },
)
async def list_lanes(doors: InDoors, caller: ByCaller, at: str | None = None) -> Response:
    """The lanes that have somebody in them."""
    must(caller, "read")
    if at is not None:
        raise Problem("not_served_yet", "this release shows lanes as they are now; leave at out")
    position = (await as_of(doors, None)).position
    configuration = doors.work.configurations.current().configuration
    width = configuration.subagent_defaults.max_concurrent
    lanes = await doors.work.registry.lanes()
    body = {"items": [_lane(lane, width, caller.sees_everything) for lane in lanes]}
    return answer(doors, body, position)


def _lane(lane: LaneState, width: int, with_holders: bool) -> dict[str, Any]:
    full = len(lane.running) >= width
    return {
        "lane": lane.lane,
        "depth": lane.depth,
        "width": width,
        "running": [
            {
                "runId": run.run_id,
                "label": run.label,
                "holder": run.holder if with_holders else None,
            }
            for run in lane.running
        ],
        "queued": [
            {
                "runId": run.run_id,
                "label": run.label,
                "place": place,
                "waitsFor": "a slot" if full else "to be claimed",
            }
            for place, run in enumerate(lane.queued, start=1)
        ],
    }
