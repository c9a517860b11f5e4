"""End the turn of a session."""

from typing import Annotated

from pydantic import Field

from application.commands.context import CommandContext, CommandResponse
from application.commands.services import CommandServices
from application.log.answers import YieldedAnswer
from application.queries.access import Caller, require_session_access
from application.queries.command import Command
from application.queries.operation import operation
from application.queries.session_reference import resolve_session_key, unknown_session
from domain.session.state import Session
from domain.values.body import Body


class YieldBody(Body):
    """An optional message."""

    message: Annotated[
        str | None,
        Field(
            max_length=2000, description="Text that the response repeats; it has no other effect."
        ),
    ] = None


@operation(
    "POST",
    "/v1/sessions/{key}/yield",
    name="yieldSession",
    tag="control",
    scope="spawn",
    summary="End the turn of a session and wait for its children",
    description=(
        "Pauses the session until its sub-agents report. The active run must end now, is ended"
        " after five seconds, and is not announced. Reports of sub-agents start a new run of"
        " the session with the reports as its message; a list of tasks reports once, when all"
        " are done. Refused if the session has no active sub-agent and no undelivered report. A"
        " repeat is a no-op."
    ),
    errors=("not_found", "cannot_yield"),
    answer=YieldedAnswer,
    repeat="key",
    command=Command("session yield", "End the turn of a session and wait for its children."),
)
async def yield_session(
    services: CommandServices,
    caller: Caller,
    key: str,
    body: YieldBody,
    command: CommandContext,
) -> CommandResponse:
    """End the turn of a session; the reports of its sub-agents start its next run."""
    session = await yielding_session(services, caller, key)
    sent = await services.continuing.yield_turn(
        session, body.message, caller.actor, command.reservation
    )
    return CommandResponse(sent.answer, sent.position)


async def yielding_session(services: CommandServices, caller: Caller, spelling: str) -> Session:
    """Return the session whose turn the caller may end; refuse any other."""
    session_key = await resolve_session_key(services, caller, spelling)
    require_session_access(caller, session_key)
    session = await services.work.registry.session(session_key)
    if session is None:
        raise await unknown_session(services, caller, spelling)
    return session
