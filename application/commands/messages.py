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

    message: Annotated[str, Field(description="Text of the message; must not be blank.")]
    mode: Annotated[
        Literal["send", "steer"],
        Field(
            description=(
                "`send` queues the message after the active run, if any. `steer` ends the"
                " active run and continues with the message (at most 4000 characters, one"
                " message per 2 s)."
            )
        ),
    ] = "send"

    @field_validator("message")
    @classmethod
    def _check_message(cls, message: str) -> str:
        if not message.strip():
            raise ValueError("must not be blank")
        return message


@operation(
    "POST",
    "/v1/runs/{runId}/messages",
    name="sendMessage",
    tag="control",
    scope=None,
    summary="Send a message to the session of a run",
    description=(
        "Sends a message to the session of this run; any run of the session will do. The"
        " message becomes a new run, which `continues` the last one. While a run is active,"
        " messages are queued (202, `queued`): at most 20, in order, each started when the"
        " previous run is announced. With mode `steer`, the active run is ended without an"
        " announcement and the new run replaces it (202, `accepted`); if the run is over,"
        " nothing changes (200, `done`). A session takes messages until it is archived; with"
        " mode `session`, until it is stopped. If the last run was announced, the new run"
        " counts again as an active child of the parent session. It uses the same workspace and"
        " the current configuration; no context script runs again. A refusal is recorded."
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
        200: {
            "description": "The run is over, so there is nothing to steer",
            "model": FinishedAnswer,
        },
        202: {
            "description": "The message is queued, or replaces the active run",
            "model": QueuedAnswer | SteeredAnswer,
        },
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
                help="Text of the message; - reads it from standard input.",
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
