"""What the token of a caller lets it do."""

from typing import get_args
from uuid import UUID

from application.queries.access import AccessScope, Caller
from application.queries.command import Column, Command
from application.queries.operation import operation
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View


class CallerView(View):
    """What a token is good for: the id it is known by and never the token itself, its scopes, and
    the patterns of the sessions it may act for. `session` is set when that is just one, `runId` for
    the token of a child."""

    kind: str
    token: str | None
    session: str | None
    run_id: UUID | None
    scopes: list[AccessScope]
    patterns: list[str]


@operation(
    "GET",
    "/v1/me",
    name="getMe",
    tag="access",
    scope=None,
    summary="What this token may do",
    description=(
        "The scopes of the token, and the patterns of the session keys that it may act for; any"
        " token may ask. `admin` stands for every scope, and `*` for every session. A child's token"
        " is that of one run, `runId`. Where authentication is switched off `kind` is `anybody`."
    ),
    command=Command(
        "me",
        "Show what the token may do, and for which sessions.",
        fields=(
            Column("kind", "kind"),
            Column("token", "token"),
            Column("session", "session"),
            Column("run", "runId"),
            Column("scopes", "scopes", "words"),
            Column("sessions", "patterns", "words"),
        ),
    ),
)
async def get_me(services: QueryServices, caller: Caller) -> Answer[CallerView]:
    """Return what its token lets the caller do."""
    view = CallerView.from_source(
        caller.actor,
        run_id=caller.run_id,
        scopes=[scope for scope in get_args(AccessScope) if scope in caller.scopes],
        patterns=list(caller.patterns),
    )
    return Answer(view, await services.work.log.head())
