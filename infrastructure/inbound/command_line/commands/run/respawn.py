"""`spawnlog run respawn`: a new spawn from an earlier run, with changes."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from infrastructure.contract.json_values import DuplicateKeyError
from infrastructure.inbound.command_line.client.arguments import (
    parse_json,
    read_text_argument,
    session_named,
)
from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.client.submit import (
    SubmitOptions,
    follow_run,
    post_or_print_refusal,
    print_accepted,
)
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject, print_object
from infrastructure.inbound.command_line.display.plain_text import printable_line

_UNKNOWN_OUTCOME = "the spawn may or may not have been accepted"
_FIELD = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)?")


def respawn_run(
    source: Annotated[OperationOptions, OptionsOf("respawn")],
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="New task; - reads standard input."),
    ] = None,
    requester: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            parser=session_named,
            help="Key of the requesting session. Default: the earlier run's. me:"
            " SPAWNLOG_SESSION_KEY, else main.",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=JSON",
            help="Set any field of the request, such as context=null or requester.to='\"C1\"';"
            " null removes it. May be repeated; overrides the other options.",
            show_default=False,
        ),
    ] = None,
    *,
    child: Annotated[OperationOptions, OptionsOf("spawn", without=("requester",))],
    submit: SubmitOptions,
    api: ApiOptions,
) -> None:
    """Spawn again from an earlier run, with changes.

    The earlier run may have been refused. Its request is sent again with the changes given here.
    Exit status 3 for a refusal; with --wait, 1 for a failed run.
    """
    with api.client() as client:
        changes: JsonObject = {} if task is None else {"task": read_text_argument(task, "task")}
        changes |= child.body(client)
        if requester is not None:
            changes["requester"] = {"sessionKey": requester}
        changes = _with_fields(changes, fields or ())
        body = {**({"changes": changes} if changes else {}), **source.body(client)}
        path = source.path(client, "/v1/runs/{runId}/respawn")
        run_id = path.split("/")[-2]
        key = submit.idempotency_key
        answer = post_or_print_refusal(client, path, body, key, _UNKNOWN_OUTCOME, api.output)
        accepted = {**answer, "respawnedFrom": run_id}
        if submit.wait:
            follow_run(client, accepted, api.output, quiet=submit.quiet)
        elif not print_object(accepted, api.output):
            _print_respawned(accepted, quiet=submit.quiet)


def _with_fields(changes: JsonObject, fields: Sequence[str]) -> JsonObject:
    """Return the changes with those of `--set`. Raise CommandError if one is not FIELD=JSON."""
    for argument in fields:
        field, sign, text = argument.partition("=")
        if not sign or not _FIELD.fullmatch(field):
            shown = printable_line(argument, 80)
            raise CommandError(f"--set {shown}: write FIELD=JSON, such as label='\"second\"'")
        try:
            value = parse_json(text)
        except DuplicateKeyError as error:
            raise CommandError(f"--set {field}: {error}") from None
        except ValueError:
            raise CommandError(
                f"--set {field}: the value after = is not JSON; a text needs quotes, as in"
                f" {field}='\"text\"'"
            ) from None
        outer, _, inner = field.partition(".")
        if inner:
            within = changes.get(outer)
            value = {**(within if isinstance(within, dict) else {}), inner: value}
        changes[outer] = value
    return changes


def _print_respawned(accepted: JsonObject, *, quiet: bool) -> None:
    print_accepted(
        accepted,
        {
            "status": accepted.get("status"),
            "run": accepted.get("runId"),
            "respawned from": accepted.get("respawnedFrom"),
            "child": accepted.get("childSessionKey"),
            "label": accepted.get("label"),
            "mode": accepted.get("mode"),
        },
        quiet=quiet,
    )
