"""`spawnlog spawn`: ask for a sub-agent, and wait for it if wanted."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.asking import (
    Key,
    WaitForResult,
    follow_run,
    post_once,
)
from infrastructure.inbound.command_line.attaching import (
    Attach,
    AttachAs,
    LightContext,
    attached_text,
    attachments,
)
from infrastructure.inbound.command_line.failures import Refused
from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    Requester,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paging import JsonObject
from infrastructure.inbound.command_line.rendering import print_fields, print_object
from infrastructure.inbound.command_line.several_tasks import (
    Parallel,
    Tasks,
    follow_batch,
    print_batch,
    tasks_given,
)
from infrastructure.inbound.command_line.sharing import Shared, SharedScope, shared_context

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client import Client

_LOST = "the spawn may have been accepted or not"


class Cleanup(StrEnum):
    """What becomes of the child's session after its announcement."""

    DELETE = "delete"
    KEEP = "keep"


Timeout = Annotated[
    int | None, typer.Option(min=0, metavar="SECONDS", help="End it after so long; 0: never.")
]
Task = Annotated[
    str | None, typer.Argument(metavar="TASK", help="What to do; - reads it from standard input.")
]
AgentId = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="Agent, or an alias of one.")
]
CleanedUp = Annotated[
    Cleanup | None, typer.Option(help="Archive right after the announcement, or later.")
]

DependsOn = Annotated[
    list[str] | None,
    typer.Option(metavar="RUN", help="Begin when this run of the tree is done (label or id)."),
]
ChainAfter = Annotated[
    str | None, typer.Option(metavar="RUN", help="One run more to wait for, by label or id.")
]


def spawn(
    task: Task = None,
    tasks: Tasks = None,
    parallel: Parallel = False,
    requester: Requester = "main",
    agent: AgentId = None,
    label: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, as provider/name.")] = None,
    thinking: Annotated[str | None, typer.Option(help="Thinking level.")] = None,
    timeout: Timeout = None,
    cleanup: CleanedUp = None,
    attach: Attach = None,
    attach_as: AttachAs = None,
    light_context: LightContext = False,
    depends_on: DependsOn = None,
    chain_after: ChainAfter = None,
    shared: Shared = None,
    shared_scope: SharedScope = None,
    wait: WaitForResult = False,
    idempotency_key: Key = None,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Spawn a sub-agent, or several. A refusal exits with 3, a failed run under --wait with 1."""
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
        "dependsOn": depends_on or None,
        "chainAfter": chain_after,
        "sharedContext": shared_context(shared) if shared else None,
        "sharedContextScope": shared_scope.value if shared_scope else None,
    }
    body: JsonObject = {"requester": {"sessionKey": requester}}
    body |= tasks_given(task, tasks or (), parallel=parallel)
    body |= {name: value for name, value in optional.items() if value is not None}
    with connected(url, data_dir) as client:
        accepted = _answered(client, body, idempotency_key, output)
        if wait:
            (follow_batch if parallel else follow_run)(client, accepted, output)
        elif not print_object(accepted, output):
            (print_batch if parallel else _print_accepted)(accepted)


def _answered(
    client: "Client", body: JsonObject, idempotency_key: str | None, output: Output
) -> JsonObject:
    """The same as `ask`; a program is told the problem of a refusal too."""
    try:
        return ask(client, body, idempotency_key)
    except Refused as refusal:
        if refusal.problem is not None:
            print_object(refusal.problem, output)
        raise


def ask(client: "Client", body: JsonObject, idempotency_key: str | None = None) -> JsonObject:
    """Ask for a spawn; the server's answer to an accepted one.

    Raises Refused with the rule and the text. When the connection is lost, Unreachable tells the
    key with which the same command can be repeated without a second run.
    """
    return post_once(client, "/v1/spawns", body, idempotency_key, _LOST)


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
