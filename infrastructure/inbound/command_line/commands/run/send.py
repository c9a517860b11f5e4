"""`spawnlog run send` and `run steer`: a message to the session of a run.

The message becomes the session's next run. A steering message replaces the active run.
"""

from typing import Annotated

from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.client.submit import (
    SubmitOptions,
    follow_run,
    post_or_print_refusal,
    print_accepted,
)
from infrastructure.inbound.command_line.client.wait import await_run
from infrastructure.inbound.command_line.display.output import JsonObject, print_object

_UNKNOWN_OUTCOME = "the message may or may not have been accepted"


Message = Annotated[OperationOptions, OptionsOf("sendMessage")]


def send_message(given: Message, *, submit: SubmitOptions, api: ApiOptions) -> None:
    """Send a message to the session of a run.

    The message becomes the session's next run; it waits while a run is active. Exit status 3 for a
    refusal; with --wait, 1 for a failed run.
    """
    _send(given, {}, submit, api)


def steer_run(given: Message, *, submit: SubmitOptions, api: ApiOptions) -> None:
    """End a run and continue with a message in its place.

    The ended run is not announced. If the run is over already, it stays as it is.
    """
    _send(given, {"mode": "steer"}, submit, api)


def _send(
    given: OperationOptions, mode: JsonObject, submit: SubmitOptions, api: ApiOptions
) -> None:
    with api.client() as client:
        body = given.body(client) | mode
        path = given.path(client, "/v1/runs/{runId}/messages")
        accepted = post_or_print_refusal(
            client, path, body, submit.idempotency_key, _UNKNOWN_OUTCOME, api.output
        )
        if submit.wait and accepted.get("status") != "done":
            if "modelApplied" not in accepted:
                await_run(client, str(accepted["runId"]), str(accepted["childSessionKey"]))
            follow_run(client, accepted, api.output, quiet=submit.quiet)
        elif not print_object(accepted, api.output):
            print_accepted(
                accepted,
                {
                    "status": accepted.get("status"),
                    "run": accepted.get("runId"),
                    "continues": accepted.get("continues"),
                    "replaces": accepted.get("replaces"),
                    "place": accepted.get("place"),
                    "text": accepted.get("text"),
                    "child": accepted.get("childSessionKey"),
                },
                quiet=submit.quiet,
            )
