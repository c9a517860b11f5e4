"""Sign in to the page: exchange a one-time code for a token of the page."""

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.services import CommandServices
from application.ports.page_tokens import CODE_SECONDS, TOKEN_SECONDS
from application.queries.command import Command
from application.queries.errors import QueryError
from application.queries.operation import operation
from application.queries.views.view import Answer, View
from domain.values.body import Body


class PageCodeAnswer(View):
    """A one-time code that signs in to the page, at `/ui/#code=…`. `code` is null if authentication
    is off, because no code is needed. `pageBuilt` is false if the page was not built, so this
    server answers its address with 404."""

    code: str | None
    expires_in_seconds: int
    page_built: bool


class PageTokenAnswer(View):
    """A token of the page, with the access of the token that requested its code, valid as long as
    that token."""

    token: str
    expires_in_seconds: int


class RevokedAnswer(View):
    """The token is no longer valid. `wasKnown` is true if it was a token of the page."""

    was_known: bool


class PageTokenBody(Body):
    """A one-time code to exchange."""

    code: str = Field(max_length=200, description="The one-time code.")


@operation(
    "POST",
    "/v1/page-codes",
    name="makePageCode",
    tag="access",
    # No scope is required: `PageTokens.make_code` decides which tokens may.
    scope=None,
    summary="Create a sign-in code for the page",
    description=(
        "Needs the administrator's token or one of the configuration. The code works once,"
        f" within {CODE_SECONDS} seconds, at any server of the log. `spawnlog open` opens the"
        " page with it; the code is in the URL fragment, which browsers never send."
    ),
    status=201,
    errors=("not_found",),
    command=Command("open", by_hand=True),
)
async def make_page_code(
    services: CommandServices, command: CommandContext
) -> Answer[PageCodeAnswer]:
    """Return a one-time code for the caller's token."""
    position = services.tail.position
    if not services.serves_page:
        raise QueryError(
            "not_found",
            "this server serves no page: noPage is set. Remove noPage (or --no-page,"
            " SPAWNLOG_NO_PAGE) and restart it",
        )
    if services.page_tokens is None:
        return Answer(_page_code(services, None, 0), position)
    code = await services.page_tokens.make_code(command.token)
    if code is None:
        raise QueryError(
            "not_permitted",
            "a token of a child or of the page cannot create codes; use the administrator's"
            " token or one of the configuration",
        )
    return Answer(_page_code(services, code, CODE_SECONDS), position)


def _page_code(services: CommandServices, code: str | None, seconds: int) -> PageCodeAnswer:
    return PageCodeAnswer(code=code, expires_in_seconds=seconds, page_built=services.page_is_built)


@operation(
    "POST",
    "/v1/page-tokens",
    name="tradePageCode",
    tag="access",
    scope=None,
    token=False,
    summary="Exchange a sign-in code for a page token",
    description=(
        "Needs no token; the code identifies the caller. The page token has the id, scopes and"
        " sessions of the token that created the code. It is valid as long as that token, and"
        f" at most {TOKEN_SECONDS // 3600} hours. A used or expired code is refused with 401."
    ),
    status=201,
    errors=("unauthorized",),
    repeat="once",
    body_required=True,
    command="of the page",
)
async def trade_page_code(
    services: CommandServices, body: PageTokenBody
) -> Answer[PageTokenAnswer]:
    """Return a token of the page for a code."""
    token = await services.page_tokens.trade_code(body.code) if services.page_tokens else None
    if token is None:
        raise QueryError(
            "unauthorized",
            "this code was already used or has expired; run spawnlog open again",
        )
    answer = PageTokenAnswer(token=token, expires_in_seconds=TOKEN_SECONDS)
    return Answer(answer, services.tail.position)


@operation(
    "DELETE",
    "/v1/page-tokens/current",
    name="revokePageToken",
    tag="access",
    scope=None,
    summary="Sign out of the page",
    description=(
        "Revokes the page token of this request. Other tokens are revoked in the configuration."
    ),
    repeat="once",
    command="of the page",
)
async def revoke_page_token(
    services: CommandServices, command: CommandContext
) -> Answer[RevokedAnswer]:
    """Revoke the caller's token if it is a token of the page."""
    tokens = services.page_tokens
    known = tokens is not None and await tokens.revoke(command.token)
    return Answer(RevokedAnswer(was_known=known), services.tail.position)
