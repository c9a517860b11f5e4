"""`spawnlog run stop`."""

import sys
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.failures import CommandFailed
from infrastructure.inbound.command_line.finding import find_run
from infrastructure.inbound.command_line.options import (
    As,
    DataDir,
    Output,
    RunName,
    Url,
    connected,
)
from infrastructure.inbound.command_line.paging import JsonObject
from infrastructure.inbound.command_line.paths import path_of
from infrastructure.inbound.command_line.plain_text import one_line
from infrastructure.inbound.command_line.rendering import note, print_object
from infrastructure.inbound.command_line.waiting import is_over, wait_for_run

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client import Client

STOP_SECONDS_MAX = 30.0


def stop_run(
    name: RunName,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Recorded with the stop.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask when the name is not exact.")
    ] = False,
    output: As = Output.TABLE,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Stop a run and everything it has spawned."""
    with connected(url, data_dir) as client:
        found = find_run(client, name)
        if not (found.exact or yes):
            _ask(client.get(path_of("runs", found.run_id)).body)
        run = stop(client, found.run_id, reason)
    if print_object(run, output):
        return
    if is_over(run, "ended"):
        print(f"run {found.run_id} is {run.get('status')}")
    else:
        print(f"run {found.run_id} is told to stop, and still {run.get('status')}")


def stop(client: "Client", run_id: str, reason: str | None = None) -> JsonObject:
    """Stop a run; the run as it is then, over unless that takes more than 30 seconds."""
    body = {} if reason is None else {"reason": reason}
    client.post(path_of("runs", run_id, "stop"), body, idempotency_key=str(uuid.uuid4()))
    return wait_for_run(client, run_id, until="ended", seconds_max=STOP_SECONDS_MAX)


def _ask(run: JsonObject) -> None:
    """Let a person confirm the run. CommandFailed when they do not, or nobody is there."""
    told = one_line(run.get("label") or run.get("task") or run.get("taskPreview") or "", 60)
    line = f"{run.get('runId')} ({one_line(run.get('status'), 20)}) {told}"
    if not sys.stdin.isatty():
        raise CommandFailed(f"the name means {line}\nrepeat with its full id, or with --yes")
    note(line)
    if not typer.confirm("Stop this run and everything it has spawned?", err=True):
        raise CommandFailed("nothing was stopped")
