"""`GET /v1/config/revisions`, `/v1/agents` and `/v1/lanes`: the configurations that decisions were
made under, whom they let spawn, and who has a place."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from application.queries import agents, lanes, revisions
from application.queries.agents import AgentListing
from application.queries.lanes import LaneListView
from application.queries.paging import LIMIT_DEFAULT, LIMIT_MAX
from application.queries.revisions import RevisionListView, RevisionView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter, LimitParameter
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter()
REVISION_MAX = 2**31 - 1
RevisionInPath = Annotated[
    int, Path(ge=1, le=REVISION_MAX, description="The number of the revision, from 1.")
]


@router.get(
    "/v1/config/revisions",
    tags=["configuration"],
    dependencies=AT_POSITION,
    operation_id="listRevisions",
    response_model=RevisionListView,
    summary="Which configuration was active when",
    description=(
        "The revisions of the configuration, the newest first: the first one is that which is"
        " active, or was `at` then. Needs a token for the sessions `*`."
    ),
    responses=endpoint_responses("foreign_cursor"),
)
async def list_revisions(
    services: InjectedServices,
    caller: ByCaller,
    limit: LimitParameter = LIMIT_DEFAULT,
    cursor: Annotated[
        str | None, Query(max_length=1024, description="`nextCursor` of the page before.")
    ] = None,
    at: AsOfParameter = None,
) -> Response:
    """The revisions."""
    page = await revisions.list_revisions(services, caller, at=at, limit=limit, cursor=cursor)
    return view_response(services, page)


@router.get(
    "/v1/config/revisions/{revision}",
    tags=["configuration"],
    dependencies=AT_POSITION,
    operation_id="getRevision",
    response_model=RevisionView,
    summary="What a configuration said",
    description=(
        "A revision with its content as it is kept, in which secrets are references. Needs a token"
        " with scope `content` for the sessions `*`."
    ),
    responses=endpoint_responses("not_found"),
)
async def get_revision(
    services: InjectedServices,
    caller: ByCaller,
    revision: RevisionInPath,
    at: AsOfParameter = None,
) -> Response:
    """One revision."""
    return view_response(services, await revisions.get_revision(services, caller, revision, at=at))


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
