"""`GET /v1/agents` and `GET /v1/lanes`."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from application.access import Caller
from application.agent_listing import listed_agents
from application.ports.registry import LaneState
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
    must,
    resolved_key,
)

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
        **success(examples.AGENTS),
        **problems("not_found"),
    },
)
async def list_agents(
    doors: InDoors,
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
    must(caller, "read")
    key = await resolved_key(doors, caller, requester, pointer="/query/requester")
    if not await doors.access.covers_session(caller, key):
        raise Problem(
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
    return answer(doors, body, (await as_of(doors, None)).position)


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
