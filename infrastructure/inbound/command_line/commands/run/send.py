"""`spawnlog run send` and `run steer`: a message to the session of a run, which becomes its next
run; one that steers takes the place of the run at work."""

from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.location import path_of
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    RunName,
)
from infrastructure.inbound.command_line.client.submit import (
    IdempotencyKeyOption,
    WaitForResult,
    follow_run,
    post_once,
    read_text_argument,
)
from infrastructure.inbound.command_line.client.wait import await_run
from infrastructure.inbound.command_line.display.failures import RequestRefused
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_fields,
    print_object,
)

_UNKNOWN_OUTCOME = "the message may have been taken or not"


def send_message(
    name: RunName,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="What to say; - reads it from standard input.")
    ],
    wait: WaitForResult = False,
    idempotency_key: IdempotencyKeyOption = None,
    *,
    api: ApiOptions,
) -> None:
    """Go on with the session of a run; while that is at work the message waits. A refusal exits
    with 3, a run that failed under --wait with 1."""
    body: JsonObject = {"message": read_text_argument(message, "message")}
    _send(name, body, api, idempotency_key=idempotency_key, wait=wait)


def steer_run(
    name: RunName,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="What to do; - reads it from standard input.")
    ],
    wait: WaitForResult = False,
    idempotency_key: IdempotencyKeyOption = None,
    *,
    api: ApiOptions,
) -> None:
    """End what a run is at, and go on with the message in its place; the run is not announced. One
    that is over stays as it is."""
    text = read_text_argument(message, "message")
    body: JsonObject = {"message": text, "mode": "steer"}
    _send(name, body, api, idempotency_key=idempotency_key, wait=wait)


def _send(
    name: str,
    body: JsonObject,
    api: ApiOptions,
    *,
    idempotency_key: str | None,
    wait: bool,
) -> None:
    with api.client() as client:
        found = find_run(client, name)
        path = path_of("runs", found.run_id, "messages")
        try:
            accepted = post_once(client, path, body, idempotency_key, _UNKNOWN_OUTCOME)
        except RequestRefused as refusal:
            if refusal.problem is not None:
                print_object(refusal.problem, api.output)
            raise
        if wait and accepted.get("status") != "done":
            if "modelApplied" not in accepted:
                await_run(client, str(accepted["runId"]), str(accepted["childSessionKey"]))
            follow_run(client, accepted, api.output)
        elif not print_object(accepted, api.output):
            _print_accepted(accepted)


def _print_accepted(accepted: JsonObject) -> None:
    print_fields(
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "continues": accepted.get("continues"),
            "replaces": accepted.get("replaces"),
            "place": accepted.get("place"),
            "text": accepted.get("text"),
            "child": accepted.get("childSessionKey"),
        }
    )
    for warning in accepted.get("warnings") or ():
        print_fields({"warning": warning})
    if accepted.get("modelApplied") is False:
        print_fields({"warning": "the model that was asked for is not used"})
