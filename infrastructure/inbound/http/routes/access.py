"""`GET /v1/me`: what the token of a request is good for."""

from fastapi import APIRouter, Response

from application.queries.access import CallerView, describe_caller
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    view_response,
)
from infrastructure.inbound.http.responses.described import endpoint_responses

router = APIRouter(tags=["access"])


@router.get(
    "/v1/me",
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
