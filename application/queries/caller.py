"""Scopes and sessions of the caller's token."""

from typing import get_args
from uuid import UUID

from application.queries.access import AccessScope, Caller
from application.queries.command import Column, Command
from application.queries.operation import operation
from application.queries.services import QueryServices
from application.queries.views.view import Answer, View


class CallerView(View):
    """Permissions of a token: `token` is its id (never the secret), `scopes` its scopes, and
    `patterns` the session keys that it may act for. `session` is set if the token acts for exactly
    one session, `runId` if it belongs to a child."""

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
    summary="Show the scopes and sessions of this token",
    description=(
        "Returns the scopes of the token and the patterns of the session keys that it may act"
        " for. Requires no scope. `admin` includes every scope, and `*` matches every session. A"
        " child's token belongs to one run, `runId`. If authentication is off, `kind` is"
        " `anybody`."
    ),
    command=Command(
        "me",
        "Show the token's scopes and sessions.",
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
    """Return the scopes and sessions of the caller's token."""
    view = CallerView.from_source(
        caller.actor,
        run_id=caller.run_id,
        scopes=[scope for scope in get_args(AccessScope) if scope in caller.scopes],
        patterns=list(caller.patterns),
    )
    return Answer(view, await services.work.log.head())
