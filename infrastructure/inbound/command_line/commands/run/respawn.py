"""`spawnlog run respawn`: a new spawn from an earlier run, with what is to be another thing."""

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from infrastructure.contract.json_values import RepeatedKey
from infrastructure.inbound.command_line.client.arguments import (
    parse_json,
    read_text_argument,
    session_named,
)
from infrastructure.inbound.command_line.client.described import Given, OptionsOf
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.client.submit import (
    SubmitOptions,
    follow_run,
    post_or_print_refusal,
    print_accepted,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import JsonObject, print_object
from infrastructure.inbound.command_line.display.plain_text import printable_line

_UNKNOWN_OUTCOME = "the spawn may have been accepted or not"
_FIELD = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)?")


def respawn_run(
    source: Annotated[Given, OptionsOf("respawn")],
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Another task; - reads it from standard input."),
    ] = None,
    requester: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            parser=session_named,
            help="Another session asks; without it the one that did asks again. me: that of"
            " SPAWNLOG_SESSION_KEY, else main.",
        ),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=JSON",
            help="Any field of a spawn request, such as context=null or requester.to='\"C1\"';"
            " null leaves it out. May be repeated, and counts more than the options beside it.",
            show_default=False,
        ),
    ] = None,
    *,
    child: Annotated[Given, OptionsOf("spawn", without=("requester",))],
    submit: SubmitOptions,
    api: ApiOptions,
) -> None:
    """Spawn again from an earlier run, with changes.

    It may be a refused one. Its request is sent again, but for what is given here. A refusal exits
    with 3, a failed run under --wait with 1.
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
            _print_respawned(accepted)


def _with_fields(changes: JsonObject, fields: Sequence[str]) -> JsonObject:
    """The changes with those of `--set`. CommandFailed for one that is none."""
    for one in fields:
        field, sign, text = one.partition("=")
        if not sign or not _FIELD.fullmatch(field):
            shown = printable_line(one, 80)
            raise CommandFailed(f"--set {shown}: write FIELD=JSON, such as label='\"second\"'")
        try:
            value = parse_json(text)
        except RepeatedKey as error:
            raise CommandFailed(f"--set {field}: {error}") from None
        except ValueError:
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


def _print_respawned(accepted: JsonObject) -> None:
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
    )
