"""`GET /v1/config/revisions`: the configurations that decisions were made under."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from application.queries import revisions
from application.queries.paging import LIMIT_DEFAULT
from application.queries.revisions import RevisionListView, RevisionView
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.requests.parameters import AsOfParameter, LimitParameter
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter(tags=["configuration"])
REVISION_MAX = 2**31 - 1
RevisionInPath = Annotated[
    int, Path(ge=1, le=REVISION_MAX, description="The number of the revision, from 1.")
]


@router.get(
    "/v1/config/revisions",
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
