"""`spawnlog spawn`: ask for a sub-agent, or for several at once, and wait for them if wanted."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    RequesterOption,
)
from infrastructure.inbound.command_line.client.submit import (
    IdempotencyKeyOption,
    WaitForResult,
    follow_run,
    post_once,
    read_text_argument,
)
from infrastructure.inbound.command_line.commands.spawn_arguments import (
    AccountOption,
    Attach,
    AttachAs,
    ChannelOption,
    ContextOption,
    LightContext,
    ModeOption,
    NoCompletion,
    PreambleOption,
    RequestFile,
    SandboxOption,
    Shared,
    SharedScopeOption,
    ThreadIdOption,
    ThreadOption,
    ToOption,
    WorkspaceOption,
    attachments_summary,
    parse_shared_context,
    read_attachments,
    read_request,
)
from infrastructure.inbound.command_line.display.failures import (
    CommandFailed,
    RequestRefused,
    RunFailed,
)
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_fields,
    print_note,
    print_object,
    print_table,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client


Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", metavar="TASK", help="One of several tasks, with --parallel."),
]
Parallel = Annotated[
    bool, typer.Option("--parallel", help="A run for each task, or none of them at all.")
]
_COLUMNS = (
    TableColumn("RUN", value_of("runId")),
    TableColumn("LABEL", value_of("label"), elastic=True),
    TableColumn("CHILD", value_of("childSessionKey"), elastic=True),
)


def task_members(task: str | None, tasks: Sequence[str], *, parallel: bool) -> JsonObject:
    """What is to be done, as the members of a request. CommandFailed when that is not clear."""
    given = [*([] if task is None else [task]), *tasks]
    if not given:
        raise CommandFailed("say what to do: TASK, or several times --task TASK with --parallel")
    if not parallel:
        if tasks:
            raise CommandFailed("--task is for several tasks: add --parallel, or give TASK alone")
        return {"task": read_text_argument(given[0], "task")}
    if given.count("-") > 1:
        raise CommandFailed("only one task can be read from standard input")
    return {"task": [read_text_argument(one, "task") for one in given], "parallel": True}


def print_batch(accepted: JsonObject) -> None:
    """What was accepted, for a person."""
    runs = accepted.get("runs") or ()
    print_fields({"status": accepted.get("status"), "batch": accepted.get("batchId")})
    print_table(runs, _COLUMNS)
    warnings = [warning for one in runs for warning in one.get("warnings") or ()]
    for warning in dict.fromkeys(str(one) for one in warnings):
        print_fields({"warning": warning})


def follow_batch(client: "Client", accepted: JsonObject, output: Output) -> None:
    """Wait for every run and print its result, in their order. When any did not end well, each of
    those is told of, and the first decides how this ends."""
    failures: list[CommandFailed] = []
    for run in accepted.get("runs") or ():
        try:
            follow_run(client, run, output)
        except (RunFailed, RequestRefused) as failure:
            failures.append(failure)
    for further in failures[1:]:
        print_note(f"{further.word}: {printable_line(further, 2000)}")
    if failures:
        raise failures[0]


if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client


_UNKNOWN_OUTCOME = "the spawn may have been accepted or not"


class CleanupChoice(StrEnum):
    """What becomes of the child's session after its announcement."""

    DELETE = "delete"
    KEEP = "keep"


Timeout = Annotated[
    int | None, typer.Option(min=0, metavar="SECONDS", help="End it after so long; 0: never.")
]
TaskArgument = Annotated[
    str | None, typer.Argument(metavar="TASK", help="What to do; - reads it from standard input.")
]
AgentId = Annotated[
    str | None, typer.Option("--agent", metavar="ID", help="Agent, or an alias of one.")
]
CleanupOption = Annotated[
    CleanupChoice | None, typer.Option(help="Archive right after the announcement, or later.")
]
DependsOnOption = Annotated[
    list[str] | None,
    typer.Option(metavar="RUN", help="Begin when this run of the tree is done (label or id)."),
]
ChainAfterOption = Annotated[
    str | None, typer.Option(metavar="RUN", help="One run more to wait for, by label or id.")
]


def spawn(
    task: TaskArgument = None,
    tasks: Tasks = None,
    parallel: Parallel = False,
    requester: RequesterOption = "main",
    agent: AgentId = None,
    label: Annotated[str | None, typer.Option(help="A name for the run.")] = None,
    model: Annotated[str | None, typer.Option(help="Model, as provider/name.")] = None,
    thinking: Annotated[str | None, typer.Option(help="Thinking level.")] = None,
    timeout: Timeout = None,
    cleanup: CleanupOption = None,
    mode: ModeOption = None,
    thread: ThreadOption = False,
    context: ContextOption = None,
    sandbox: SandboxOption = None,
    preamble: PreambleOption = None,
    no_completion: NoCompletion = False,
    channel: ChannelOption = None,
    account: AccountOption = None,
    to: ToOption = None,
    thread_id: ThreadIdOption = None,
    workspace: WorkspaceOption = None,
    attach: Attach = None,
    attach_as: AttachAs = None,
    light_context: LightContext = False,
    depends_on: DependsOnOption = None,
    chain_after: ChainAfterOption = None,
    shared: Shared = None,
    shared_scope: SharedScopeOption = None,
    file: RequestFile = None,
    wait: WaitForResult = False,
    idempotency_key: IdempotencyKeyOption = None,
    *,
    api: ApiOptions,
) -> None:
    """Spawn a sub-agent, or several. A refusal exits with 3, a failed run under --wait with 1."""
    optional = {
        "agentId": agent,
        "label": label,
        "model": model,
        "thinking": thinking,
        "runTimeoutSeconds": timeout,
        "cleanup": cleanup.value if cleanup else None,
        "attachments": read_attachments(attach) if attach else None,
        "attachAs": {"mountPath": attach_as} if attach_as is not None else None,
        "lightContext": light_context or None,
        "dependsOn": depends_on or None,
        "chainAfter": chain_after,
        "sharedContext": parse_shared_context(shared) if shared else None,
        "sharedContextScope": shared_scope.value if shared_scope else None,
        "mode": mode.value if mode else None,
        "thread": thread or None,
        "context": context.value if context else None,
        "sandbox": sandbox.value if sandbox else None,
        "contextPreamble": preamble,
        "expectsCompletionMessage": False if no_completion else None,
    }
    place = {
        "channel": channel,
        "accountId": account,
        "to": to,
        "threadId": thread_id,
        "workspaceDir": workspace,
    }
    body = read_request(file) if file is not None else {}
    asks = body.get("requester")
    known = asks if isinstance(asks, dict) else {}
    body["requester"] = {"sessionKey": requester, **known, **without_none(place)}
    if file is None or task is not None or tasks:
        body |= task_members(task, tasks or (), parallel=parallel)
    body |= without_none(optional)
    parallel = parallel or isinstance(body.get("task"), list)
    with api.client() as client:
        accepted = _post_or_print_refusal(client, body, idempotency_key, api.output)
        if wait:
            (follow_batch if parallel else follow_run)(client, accepted, api.output)
        elif not print_object(accepted, api.output):
            (print_batch if parallel else _print_accepted)(accepted)


def without_none(members: Mapping[str, object]) -> JsonObject:
    """What was given."""
    return {name: value for name, value in members.items() if value is not None}


def _post_or_print_refusal(
    client: "Client", body: JsonObject, idempotency_key: str | None, output: Output
) -> JsonObject:
    """The same as `ask`; a program is told the problem of a refusal too."""
    try:
        return post_spawn(client, body, idempotency_key)
    except RequestRefused as refusal:
        if refusal.problem is not None:
            print_object(refusal.problem, output)
        raise


def post_spawn(
    client: "Client", body: JsonObject, idempotency_key: str | None = None
) -> JsonObject:
    """Ask for a spawn; the server's answer to an accepted one.

    Raises RequestRefused with the rule and the text. When the connection is lost, Unreachable
    tells the key with which the same command can be repeated without a second run.
    """
    return post_once(client, "/v1/spawns", body, idempotency_key, _UNKNOWN_OUTCOME)


def _print_accepted(accepted: JsonObject) -> None:
    print_fields(
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "child": accepted.get("childSessionKey"),
            "label": accepted.get("label"),
            "mode": accepted.get("mode"),
            "attached": attachments_summary(accepted.get("attachments")),
        }
    )
    for warning in accepted.get("warnings") or ():
        print_fields({"warning": warning})
    if accepted.get("modelApplied") is False:
        print_fields({"warning": "the model that was asked for is not used"})
