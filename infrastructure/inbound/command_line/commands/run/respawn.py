"""`spawnlog run respawn`: a new spawn from an earlier run, with what is to be another thing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from infrastructure.contract.json_values import RepeatedKey
from infrastructure.inbound.command_line.client.arguments import (
    ChildOptions,
    parse_json,
    read_text_argument,
    without_none,
)
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import ApiOptions, RunName
from infrastructure.inbound.command_line.client.submit import (
    SubmitOptions,
    follow_run,
    post_or_print_refusal,
    print_accepted,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.output import JsonObject, print_object
from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.request import path_of

_UNKNOWN_OUTCOME = "the spawn may have been accepted or not"
_FIELD = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)?")


class ScriptsOption(StrEnum):
    """Whether context scripts run again."""

    AGAIN = "again"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class RespawnOptions:
    """What of the earlier run's life is used again."""

    scripts: Annotated[
        ScriptsOption,
        typer.Option(help="Run context scripts again, or use what they said for the earlier run."),
    ] = ScriptsOption.AGAIN
    up_to: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Begin with the earlier run's transcript up to entry N."
        ),
    ] = None
    config_revision: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Decide under this revision of the configuration."),
    ] = None

    def members(self) -> JsonObject:
        """What was given, as the members of a request."""
        is_again = self.scripts is ScriptsOption.AGAIN
        return without_none(
            {
                "scripts": None if is_again else self.scripts.value,
                "transcript": {"upTo": self.up_to} if self.up_to is not None else None,
                "configRevision": self.config_revision,
            }
        )


def respawn_run(
    name: RunName,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Another task; - reads it from standard input."),
    ] = None,
    requester: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Another session asks; without it the one that did asks again."
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
    child: ChildOptions,
    source: RespawnOptions,
    submit: SubmitOptions,
    api: ApiOptions,
) -> None:
    """Spawn again from an earlier run, with changes.

    It may be a refused one. Its request is sent again, but for what is given here. A refusal exits
    with 3, a failed run under --wait with 1.
    """
    changes: JsonObject = {} if task is None else {"task": read_text_argument(task, "task")}
    changes |= child.members()
    if requester is not None:
        changes["requester"] = {"sessionKey": requester}
    body = without_none({"changes": _with_fields(changes, fields or ()) or None})
    body |= source.members()
    with api.client() as client:
        run_id = find_run(client, name).run_id
        path = path_of("runs", run_id, "respawn")
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
