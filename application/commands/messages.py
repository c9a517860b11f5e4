"""Send messages to sessions."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from application.commands.context import CommandContext, CommandResponse
from application.commands.control import addressed_run, require_control, require_service
from application.commands.services import CommandServices
from application.log.answers import (
    ContinuedAnswer,
    FinishedAnswer,
    QueuedAnswer,
    SteeredAnswer,
)
from application.queries.access import Caller
from application.queries.command import Command, Option
from application.queries.operation import operation
from domain.values.body import Body


class MessageBody(Body):
    """A message to a session."""

    message: str
    mode: Annotated[
        Literal["send", "steer"],
        Field(
            description=(
                "`send` waits for the run at work, if there is one; `steer` ends it and goes on"
                " with the message in its place (4000 characters at most, one in 2 s)."
            )
        ),
    ] = "send"

    @field_validator("message")
    @classmethod
    def _check_message(cls, message: str) -> str:
        if not message.strip():
            raise ValueError("must say something")
        return message


@operation(
    "POST",
    "/v1/runs/{runId}/messages",
    name="sendMessage",
    tag="control",
    scope=None,
    summary="Go on with a session",
    description=(
        "A message to the session of this run, whichever of its runs that is: it becomes a new run"
        " of the session, which `continues` its last one. While that one is at work the message"
        " waits (202, `queued`): 20 of them at most, taken in their order, each once the run"
        " before it is announced. With mode `steer` the run at work is ended and not announced, and"
        " the new one takes its place (202, `accepted`); one that is over stays as it is (200,"
        " `done`). The session is open until it is put away, one of mode `session` until it is"
        " stopped. The new run of a session whose last one was announced takes a place among the"
        " children of the session that spawned it. It works in the same workspace and by the"
        " configuration of now; no context script runs again. A refusal is recorded."
    ),
    errors=(
        "not_found",
        "run_active",
        "queue_full",
        "steered_too_soon",
        "session_closed",
        "no_session",
        "spawn_forbidden",
        "spawn_error",
        "erased",
    ),
    answer=ContinuedAnswer | QueuedAnswer | SteeredAnswer | FinishedAnswer,
    status=201,
    status_description="Accepted and durable",
    statuses={"queued": 202, "steered": 202, "finished": 200},
    other_answers={
        200: {"description": "Nothing to steer: the run is over", "model": FinishedAnswer},
        202: {"description": "It waits, or replaces", "model": QueuedAnswer | SteeredAnswer},
    },
    repeat="key",
    location="/v1/runs/{runId}",
    body_required=True,
    command=Command(
        "run send",
        by_hand=True,
        arguments=("message",),
        options={
            "message": Option(
                metavar="MESSAGE",
                means="stdin",
                help="What to say; - reads it from standard input.",
            ),
            "mode": None,
        },
    ),
)
async def send_message(
    services: CommandServices,
    caller: Caller,
    run_id: str,
    body: MessageBody,
    command: CommandContext,
) -> CommandResponse:
    """Send a message to the session of a run, or steer its run with it."""
    await require_control(services, caller, run_id)
    require_service(services)
    steers = body.mode == "steer"
    run = await addressed_run(services, caller, run_id, body.message, steers=steers)
    submit = services.continuing.steer if steers else services.continuing.send
    sent = await submit(run, body.message, caller.actor, command.reservation, command.traceparent)
    return CommandResponse(sent.answer, sent.position)
