"""Stop runs and sessions."""

from typing import Annotated

from pydantic import Field

from application.commands.context import CommandContext
from application.commands.control import controlled_run, controlled_session, require_control
from application.commands.services import CommandServices
from application.log.answers import SessionStoppedAnswer, StoppedAnswer
from application.log.event_log import StoredAnswer
from application.queries.access import Caller
from application.queries.command import Command, Option
from application.queries.operation import operation
from application.queries.session_reference import resolve_session_key
from domain.values.body import Body


class StopBody(Body):
    """The reason for the stop."""

    reason: Annotated[
        str | None, Field(max_length=2000, description="Reason, recorded with the stop.")
    ] = None


@operation(
    "POST",
    "/v1/runs/{runId}/stop",
    name="stopRun",
    tag="control",
    scope=None,
    essential=True,
    summary="Stop a run and everything it has spawned",
    description=(
        "A run in preparation or in the queue ends at once. An executing run ends when its"
        " processes have exited: wait with `GET /v1/runs/{runId}?wait=30s&until=ended`."
        " Stopping a finished run is a no-op."
    ),
    errors=("not_found",),
    answer=StoppedAnswer,
    repeat="key",
    command=Command("run stop", by_hand=True, options={"reason": Option(help="Reason to record.")}),
)
async def stop_run(
    services: CommandServices,
    caller: Caller,
    run_id: str,
    body: StopBody,
    command: CommandContext,
) -> StoredAnswer:
    """Stop a run and its descendants."""
    await require_control(services, caller, run_id)
    run = await controlled_run(services, caller, run_id, "stop")
    return await services.stopping.stop(run, caller.actor, body.reason, command.reservation)


@operation(
    "POST",
    "/v1/sessions/{key}/stop",
    name="stopSession",
    tag="control",
    scope=None,
    essential=True,
    summary="Stop a session's own run and everything below it",
    description=(
        "Stops the active run of the session, if any, and all its descendants. A child with"
        " mode `session` is closed: it takes no more messages, and is archived with all its"
        " runs when the last one is announced. A repeat is a no-op."
    ),
    errors=("not_found",),
    answer=SessionStoppedAnswer,
    repeat="key",
    command=Command(
        "session stop", by_hand=True, options={"reason": Option(help="Reason to record.")}
    ),
)
async def stop_session(
    services: CommandServices,
    caller: Caller,
    key: str,
    body: StopBody,
    command: CommandContext,
) -> StoredAnswer:
    """Stop the run of a session and all runs below it; close a session that stays open."""
    session_key = await resolve_session_key(services, caller, key)
    await require_control(services, caller, session_key)
    session = await controlled_session(services, caller, key, session_key, "stop")
    return await services.stopping.stop_session(
        session, caller.actor, body.reason, command.reservation
    )
