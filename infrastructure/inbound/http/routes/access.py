"""`/v1/me`, `/v1/page-codes` and `/v1/page-tokens`: what a token may do, and signing in to the
page."""

from fastapi import APIRouter, Request, Response
from pydantic import Field

from application.ports.page_tokens import CODE_SECONDS, TOKEN_SECONDS
from application.queries.access import CallerView, describe_caller
from application.queries.operation import Body
from infrastructure.inbound.http.requests.bodies import read_body
from infrastructure.inbound.http.requests.caller import (
    AT_POSITION,
    ByCaller,
    InjectedServices,
    json_response,
    token_of,
    view_response,
)
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.problems import HttpProblem
from infrastructure.inbound.http.schemas.answers import (
    PageCodeAnswer,
    PageTokenAnswer,
    RevokedAnswer,
)

router = APIRouter(tags=["access"])


class PageTokenBody(Body):
    """`POST /v1/page-tokens`."""

    code: str = Field(max_length=200, description="The code, as it was given.")


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


@router.post(
    "/v1/page-codes",
    operation_id="makePageCode",
    response_model=PageCodeAnswer,
    status_code=201,
    summary="Make a code that signs in to the page",
    description=(
        "For the administrator's token and those of the configuration. The code works once and for"
        f" {CODE_SECONDS} seconds, at any server of the log; `spawnlog open` opens the page with"
        " it. It stands behind the `#` of the address, which browsers send to nobody."
    ),
    responses=endpoint_responses(*BODY_PROBLEMS, status=201),
)
async def make_page_code(request: Request, services: InjectedServices, _: ByCaller) -> Response:
    """A code."""
    await read_body(request, Body)
    if services.page_tokens is None:
        return _created(services, {"code": None, "expiresInSeconds": 0})
    code = await services.page_tokens.make_code(token_of(request))
    if code is None:
        raise HttpProblem(
            "not_permitted",
            "a child's token, or one of the page, makes no codes; use the administrator's token"
            " or one of the configuration",
        )
    return _created(services, {"code": code, "expiresInSeconds": CODE_SECONDS})


@router.post(
    "/v1/page-tokens",
    operation_id="tradePageCode",
    response_model=PageTokenAnswer,
    status_code=201,
    summary="Trade a code for a token of the page",
    description=(
        "Without a token: the code says who asks. The token has the id, the scopes and the sessions"
        " of the one that asked for the code, for as long as that one has them, and for"
        f" {TOKEN_SECONDS // 3600} hours at most. 401 for a code that was used or is too old."
    ),
    responses=endpoint_responses("unauthorized", *BODY_PROBLEMS, status=201, needs_token=False),
    openapi_extra={"security": [], **request_body_schema(PageTokenBody, required=True)},
)
async def trade_page_code(request: Request, services: InjectedServices) -> Response:
    """A token."""
    body, _ = await read_body(request, PageTokenBody)
    token = await services.page_tokens.trade_code(body.code) if services.page_tokens else None
    if token is None:
        raise HttpProblem(
            "unauthorized",
            "this code was used, or is older than a minute; run spawnlog open once more",
        )
    return _created(services, {"token": token, "expiresInSeconds": TOKEN_SECONDS})


@router.delete(
    "/v1/page-tokens/current",
    operation_id="revokePageToken",
    response_model=RevokedAnswer,
    summary="Revoke a token of the page",
    description=(
        "The token that is sent, when it is one of the page: signing out of it. Other tokens are"
        " revoked in the configuration."
    ),
    responses=endpoint_responses(),
)
async def revoke_page_token(request: Request, services: InjectedServices, _: ByCaller) -> Response:
    """Sign out."""
    known = services.page_tokens is not None and await services.page_tokens.revoke(
        token_of(request)
    )
    return json_response(services, {"wasKnown": known}, services.tail.position)


def _created(services: Services, body: dict[str, object]) -> Response:
    return json_response(services, body, services.tail.position, status=201)
