"""`spawnlog run respawn`: a new spawn from an earlier run, with what is to be another thing."""

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

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
from infrastructure.inbound.command_line.commands.spawn import (
    AgentId,
    CleanupOption,
    Timeout,
    without_none,
)
from infrastructure.inbound.command_line.commands.spawn_arguments import (
    Attach,
    PreambleOption,
    Shared,
    parse_shared_context,
    read_attachments,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed, RequestRefused
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_fields,
    print_object,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import Client


_UNKNOWN_OUTCOME = "the spawn may have been accepted or not"
_FIELD = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)?")


class ScriptsOption(StrEnum):
    """Whether context scripts run again."""

    AGAIN = "again"
    RECORDED = "recorded"


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=JSON",
        help="Any field of a spawn request, such as context=null or requester.to='\"C1\"'; null"
        " leaves it out. May be repeated, and counts more than the options beside it.",
        show_default=False,
    ),
]


def respawn_run(
    name: RunName,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Another task; - reads it from standard input."),
    ] = None,
    agent: AgentId = None,
    label: Annotated[str | None, typer.Option(help="Another name for the run.")] = None,
    model: Annotated[str | None, typer.Option(help="Another model, as provider/name.")] = None,
    thinking: Annotated[str | None, typer.Option(help="Another thinking level.")] = None,
    timeout: Timeout = None,
    cleanup: CleanupOption = None,
    preamble: PreambleOption = None,
    attach: Attach = None,
    shared: Shared = None,
    requester: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Another session asks; without it the one that did asks again."
        ),
    ] = None,
    fields: SetOption = None,
    scripts: Annotated[
        ScriptsOption,
        typer.Option(help="Run context scripts again, or use what they said for the earlier run."),
    ] = ScriptsOption.AGAIN,
    up_to: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Begin with the earlier run's transcript up to entry N."
        ),
    ] = None,
    config_revision: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Decide under this revision of the configuration."),
    ] = None,
    wait: WaitForResult = False,
    idempotency_key: IdempotencyKeyOption = None,
    *,
    api: ApiOptions,
) -> None:
    """Spawn anew from an earlier run, also from one that was refused: its request, but for what is
    given here. A refusal exits with 3, a failed run under --wait with 1."""
    changes = without_none(
        {
            "task": read_text_argument(task, "task") if task is not None else None,
            "agentId": agent,
            "label": label,
            "model": model,
            "thinking": thinking,
            "runTimeoutSeconds": timeout,
            "cleanup": cleanup.value if cleanup else None,
            "contextPreamble": preamble,
            "attachments": read_attachments(attach) if attach else None,
            "sharedContext": parse_shared_context(shared) if shared else None,
            "requester": {"sessionKey": requester} if requester is not None else None,
        }
    )
    body = without_none(
        {
            "changes": _with_fields(changes, fields or ()) or None,
            "scripts": scripts.value if scripts is not ScriptsOption.AGAIN else None,
            "transcript": {"upTo": up_to} if up_to is not None else None,
            "configRevision": config_revision,
        }
    )
    with api.client() as client:
        accepted = _post(client, find_run(client, name).run_id, body, idempotency_key, api.output)
        if wait:
            follow_run(client, accepted, api.output)
        elif not print_object(accepted, api.output):
            _print_accepted(accepted)


def _with_fields(changes: JsonObject, fields: Sequence[str]) -> JsonObject:
    """The changes with those of `--set`. CommandFailed for one that is none."""
    for one in fields:
        field, sign, text = one.partition("=")
        if not sign or not _FIELD.fullmatch(field):
            shown = printable_line(one, 80)
            raise CommandFailed(f"--set {shown}: write FIELD=JSON, such as label='\"second\"'")
        try:
            value = json.loads(text)
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            raise CommandFailed(
                f"--set {field}: what stands behind = is not JSON; a text needs its quotes, as in"
                f" {field}='\"text\"'"
            ) from None
        outer, _, inner = field.partition(".")
        if inner:
            within = changes.get(outer)
            value = {**(within if isinstance(within, dict) else {}), inner: value}
        changes[outer] = value
    return changes


def _post(
    client: "Client", run_id: str, body: JsonObject, idempotency_key: str | None, output: Output
) -> JsonObject:
    """The server's answer, with the run that it was made from; a program is told the problem of a
    refusal too."""
    try:
        path = path_of("runs", run_id, "respawn")
        accepted = post_once(client, path, body, idempotency_key, _UNKNOWN_OUTCOME)
    except RequestRefused as refusal:
        if refusal.problem is not None:
            print_object(refusal.problem, output)
        raise
    return {**accepted, "respawnedFrom": run_id}


def _print_accepted(accepted: JsonObject) -> None:
    print_fields(
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "respawned from": accepted.get("respawnedFrom"),
            "child": accepted.get("childSessionKey"),
            "label": accepted.get("label"),
            "mode": accepted.get("mode"),
        }
    )
    for warning in accepted.get("warnings") or ():
        print_fields({"warning": warning})
    if accepted.get("modelApplied") is False:
        print_fields({"warning": "the model that was asked for is not used"})
