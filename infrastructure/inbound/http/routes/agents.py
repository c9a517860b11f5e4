"""`GET /v1/me`, `GET /v1/agents` and `GET /v1/lanes`: who may what, and who has a place."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from application.queries import agents, lanes
from application.queries.access import CallerView, describe_caller
from application.queries.agents import AgentListing
from application.queries.lanes import LaneListView
from application.queries.paging import LIMIT_MAX
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter, LimitParameter
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter()


@router.get(
    "/v1/agents",
    tags=["agents"],
    dependencies=AT_POSITION,
    operation_id="listAgents",
    response_model=AgentListing,
    summary="The agents a requester may spawn",
    description=(
        "The requester's own agent first when it is allowed, the others sorted. The requester"
        " need not be on record; when it is, its agent is the one on record. It must be a session"
        " that the token covers. With `at` by the configuration that was in force then."
    ),
    responses=endpoint_responses("not_found"),
)
async def list_agents(
    services: InjectedServices,
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
    at: AsOfParameter = None,
) -> Response:
    """The agents."""
    return view_response(services, await agents.list_agents(services, caller, requester, at=at))


@router.get(
    "/v1/lanes",
    tags=["agents"],
    dependencies=AT_POSITION,
    operation_id="listLanes",
    response_model=LaneListView,
    summary="The lanes",
    description=(
        "Width, who holds a slot, who waits in which place and for what. The width counts per"
        " depth, so that a parent that waits never starves its child; with `at` it is that of the"
        " configuration in force then."
    ),
    responses=endpoint_responses("not_found"),
)
async def list_lanes(
    services: InjectedServices,
    caller: ByCaller,
    limit: LimitParameter = LIMIT_MAX,
    at: AsOfParameter = None,
) -> Response:
    """The lanes."""
    return view_response(services, await lanes.list_lanes(services, caller, limit=limit, at=at))


@router.get(
    "/v1/me",
    tags=["access"],
    dependencies=AT_POSITION,
    operation_id="getMe",
    response_model=CallerView,
    summary="What this token may do",
    description=(
        "The scopes of the token, and the patterns of the session keys that it may act for; any"
        " token may ask. `admin` stands for every scope, and `*` for every session. A child's token"
        " is that of one run, `runId`. Where authentication is switched off `kind` is `anybody`."
    ),
    responses=endpoint_responses(),
)
async def get_me(services: InjectedServices, caller: ByCaller) -> Response:
    """Who asks."""
    return view_response(services, await describe_caller(services.work.log, caller))
