"""Change the preamble of a session."""

from typing import Annotated

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.control import controlled_session
from application.commands.services import CommandServices
from application.log.answers import PreambleAnswer
from application.log.event_log import Reservation, StoredAnswer
from application.queries.access import Caller
from application.queries.command import Command, Option
from application.queries.operation import operation
from application.queries.session_reference import resolve_session_key
from application.session.preamble import PreambleWriter
from domain.values.body import Body


class PreambleBody(Body):
    """The new preamble of the session's later runs."""

    preamble: Annotated[str, Field(description="Text in front of the child's system prompt.")]


@operation(
    "PUT",
    "/v1/sessions/{key}/preamble",
    name="writePreamble",
    tag="control",
    scope="control",
    summary="Set the preamble of a session",
    description=(
        "Replaces the spawn's `contextPreamble` for later runs; the same length limit applies."
        " The active run keeps its preamble. A blank text removes the preamble."
    ),
    errors=("not_found", "no_session", "session_closed", "erased"),
    answer=PreambleAnswer,
    repeat="key",
    body_required=True,
    command=Command(
        "session write-preamble",
        "Set the preamble of a session.\n\nOnly for a session that was spawned. It applies to later"
        " runs of the session.",
        arguments=("preamble",),
        options={
            "preamble": Option(
                metavar="TEXT",
                means="stdin",
                help="Text of the preamble; - reads it from standard input.",
            )
        },
        done="the preamble of session {key} is set",
    ),
)
async def write_preamble(
    services: CommandServices,
    caller: Caller,
    key: str,
    body: PreambleBody,
    command: CommandContext,
) -> StoredAnswer:
    """Change the preamble of the later runs of a session."""
    return await _write(services, caller, key, body.preamble, command.reservation)


@operation(
    "DELETE",
    "/v1/sessions/{key}/preamble",
    name="clearPreamble",
    tag="control",
    scope="control",
    summary="Remove the preamble of a session",
    description="Later runs have no preamble.",
    errors=("not_found", "no_session", "session_closed", "erased"),
    answer=PreambleAnswer,
    repeat="once",
    command=Command(
        "session clear-preamble",
        "Remove the preamble of a session.",
        done="the preamble of session {key} is removed",
    ),
)
async def clear_preamble(
    services: CommandServices, caller: Caller, key: str, command: CommandContext
) -> StoredAnswer:
    """Remove the preamble of a session."""
    return await _write(services, caller, key, None, command.reservation)


async def _write(
    services: CommandServices,
    caller: Caller,
    key: str,
    text: str | None,
    reservation: Reservation | None,
) -> StoredAnswer:
    session_key = await resolve_session_key(services, caller, key)
    session = await controlled_session(services, caller, key, session_key, "write the preamble of")
    return await PreambleWriter(services.work).write(session, text, caller.actor, reservation)
