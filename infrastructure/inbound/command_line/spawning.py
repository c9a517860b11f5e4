"""`spawnlog spawn`: ask for a sub-agent, and wait for it if wanted."""

import sys
import uuid
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.attaching import (
    Attach,
    AttachAs,
    LightContext,
    attached_text,
    attachments,
)
from infrastructure.inbound.command_line.failures import (
    CommandFailed,
    Refused,
    RunFailed,
    Unreachable,
)
from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    Requester,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paging import JsonObject
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.rendering import (
    note,
    print_block,
    print_fields,
    print_object,
)
from infrastructure.inbound.command_line.times import duration
from infrastructure.inbound.command_line.waiting import wait_for_run

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client import Client

TASK_CHARACTERS_MAX = 16 * 1024 * 1024
IDEMPOTENCY_KEY_CHARACTERS_MAX = 255


class Cleanup(StrEnum):
    """What becomes of the child's session after its announcement."""

    DELETE = "delete"
    KEEP = "keep"


Timeout = Annotated[
    int | None, typer.Option(min=0, metavar="SECONDS", help="End it after so long; 0: never.")
]
CleanedUp = Annotated[
    Cleanup | None, typer.Option(help="Archive right after the announcement, or later.")
]
Key = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="The same key and spawn again gives the same run."),
]


def spawn(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="What to do; - reads it from standard input.")
    ],
    requester: Requester = "main",
    agent: Annotated[
        str | None, typer.Option("--agent", metavar="ID", help="Agent, or an alias of one.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, as provider/name.")] = None,
    thinking: Annotated[str | None, typer.Option(help="Thinking level.")] = None,
    timeout: Timeout = None,
    cleanup: CleanedUp = None,
    attach: Attach = None,
    attach_as: AttachAs = None,
    light_context: LightContext = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it is announced and print its result.")
    ] = False,
    idempotency_key: Key = None,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Spawn a sub-agent. A refusal exits with 3, a run that failed under --wait with 1."""
    optional = {
        "agentId": agent,
        "label": label,
        "model": model,
        "thinking": thinking,
        "runTimeoutSeconds": timeout,
        "cleanup": cleanup.value if cleanup else None,
        "attachments": attachments(attach) if attach else None,
        "attachAs": {"mountPath": attach_as} if attach_as is not None else None,
        "lightContext": light_context or None,
    }
    body: JsonObject = {"requester": {"sessionKey": requester}, "task": _task(task)}
    body |= {name: value for name, value in optional.items() if value is not None}
    with connected(url, data_dir) as client:
        try:
            accepted = ask(client, body, idempotency_key)
        except Refused as refusal:
            if refusal.problem is not None:
                print_object(refusal.problem, output)
            raise
        if wait:
            _follow(client, accepted, output)
        elif not print_object(accepted, output):
            _print_accepted(accepted)


def ask(client: "Client", body: JsonObject, idempotency_key: str | None = None) -> JsonObject:
    """Ask for a spawn; the server's answer to an accepted one.

    Raises Refused with the rule and the text. When the connection is lost, Unreachable tells the
    key with which the same command can be repeated without a second run.
    """
    key = idempotency_key or str(uuid.uuid4())
    if len(key) > IDEMPOTENCY_KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        raise CommandFailed(
            f"an idempotency key is at most {IDEMPOTENCY_KEY_CHARACTERS_MAX} printable ASCII signs"
        )
    try:
        return client.post("/v1/spawns", body, idempotency_key=key).body
    except Unreachable as failure:
        raise Unreachable(
            f"{failure.message}\n  the spawn may have been accepted or not: the same command with "
            f"--idempotency-key {key} finds out, and spawns nothing twice"
        ) from None


def _task(argument: str) -> str:
    if argument != "-":
        return argument
    text = sys.stdin.read(TASK_CHARACTERS_MAX + 1)
    if len(text) > TASK_CHARACTERS_MAX:
        raise CommandFailed(f"a task has at most {TASK_CHARACTERS_MAX} characters")
    return text


def _follow(client: "Client", accepted: JsonObject, output: Output) -> None:
    run_id = str(accepted.get("runId"))
    note(f"run {one_line(run_id)} is accepted; waiting for its announcement")
    run = wait_for_run(client, run_id, until="announced")
    if not print_object(run, output):
        print_block(str(run.get("resultText") or "(not available)"))
    status = one_line(run.get("status"), 20)
    if run.get("stage") == "refused":
        raise Refused(f"run {one_line(run_id)}: {one_line(run.get('error') or 'refused', 2000)}")
    if run.get("outcome") != "success":
        reason = one_line(run.get("error") or "", 2000)
        raise RunFailed(f"run {one_line(run_id)} ended as {status}{': ' if reason else ''}{reason}")
    took = duration(run.get("runtimeMs"))
    note(f"run {one_line(run_id)} is {status}{f' after {took}' if took else ''}")


def _print_accepted(accepted: JsonObject) -> None:
    print_fields(
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "child": accepted.get("childSessionKey"),
            "label": accepted.get("label"),
            "mode": accepted.get("mode"),
            "attached": attached_text(accepted.get("attachments")),
        }
    )
    for warning in accepted.get("warnings") or ():
        print_fields({"warning": warning})
    if accepted.get("modelApplied") is False:
        print_fields({"warning": "the model that was asked for is not used"})
