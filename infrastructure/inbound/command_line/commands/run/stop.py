"""`spawnlog run stop` and `spawnlog session stop`."""

import sys
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    RequesterOption,
    RunName,
    SessionName,
)
from infrastructure.inbound.command_line.client.wait import has_reached, wait_for_run
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_object
from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


STOP_SECONDS_MAX = 30.0
ALL_RUNS = ("all", "*")
Reason = Annotated[OperationOptions, OptionsOf("stopRun", only=("reason",))]
AssumeYes = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="Stop without confirmation, even if the name is not a full id or key."
    ),
]


def stop_run(
    name: RunName,
    requester: RequesterOption = "main",
    *,
    given: Reason,
    yes: AssumeYes = False,
    api: ApiOptions,
) -> None:
    """Stop a run and everything it has spawned.

    `all` stops all active runs of the requester.
    """
    if name in ALL_RUNS:
        _stop_all(requester, given, api, yes=yes)
        return
    with api.client() as client:
        match = find_run(client, name)
        if not (match.exact or yes):
            _confirm_run(client.get(path_of("runs", match.run_id)).value)
        (run,) = stop_and_wait(client, [match.run_id], given.body(client))
    if print_object(run, api.output):
        return
    if has_reached(run, "ended"):
        print(f"run {match.run_id} is {run.get('status')}")
    else:
        print(f"run {match.run_id} is asked to stop, and still {run.get('status')}")


def _stop_all(requester: str, given: OperationOptions, api: ApiOptions, *, yes: bool) -> None:
    """Stop all active runs of a session and everything below them. The session stays open."""
    with api.client() as client:
        session = client.get(path_of("sessions", requester)).value
        run_ids = [str(run_id) for run_id in session.get("activeRuns") or ()]
        if run_ids and not yes:
            _confirm_session(session)
        runs = stop_and_wait(client, run_ids, given.body(client))
    note_active(runs)
    if print_object({"items": runs}, api.output):
        return
    if not runs:
        print("no active runs")
        return
    ended = sum(has_reached(run, "ended") for run in runs)
    print("1 run has ended" if ended == 1 else f"{ended} runs have ended")


def stop_and_wait(
    client: "CommandClient", run_ids: Sequence[str], body: JsonObject
) -> list[JsonObject]:
    """Request the stop of all runs, then wait for them.

    Return them when all have ended, or as they are after 30 seconds.
    """
    for run_id in run_ids:
        client.post(path_of("runs", run_id, "stop"), body, idempotency_key=str(uuid.uuid4()))
    deadline = time.monotonic() + STOP_SECONDS_MAX
    runs = []
    for run_id in run_ids:
        left = max(deadline - time.monotonic(), 0.0)
        runs.append(wait_for_run(client, run_id, until="ended", seconds_max=left))
    return runs


def note_active(runs: Sequence[JsonObject]) -> None:
    """Note on stderr how many of these runs have not ended."""
    active = sum(not has_reached(run, "ended") for run in runs)
    if active:
        subject = "1 run is" if active == 1 else f"{active} runs are"
        print_note(f"{subject} asked to stop, and still running")


def stop_session(
    key: SessionName, *, given: Reason, yes: AssumeYes = False, api: ApiOptions
) -> None:
    """Stop a session's own run and everything below it.

    A child session that stays open is closed: it accepts no more messages.
    """
    with api.client() as client:
        session = client.get(path_of("sessions", key)).value
        whole = str(session.get("sessionKey") or key)
        if key not in (whole, session.get("sessionId")) and not yes:
            _confirm_session(session)
        path = path_of("sessions", whole, "stop")
        stopped = client.post(path, given.body(client), idempotency_key=str(uuid.uuid4())).value
        run = _wait_for_own_run(client, stopped)
    if print_object(stopped, api.output):
        return
    if stopped.get("closed"):
        done = " is closed"
    elif run is None and session.get("pendingDescendants") == 0:
        done = ": nothing is active"
    else:
        done = ": everything it has spawned is asked to stop"
    print(f"session {printable_line(whole)}{done}")
    if run is not None:
        print(
            f"run {printable_line(stopped.get('runId'))} is {printable_line(run.get('status'), 20)}"
        )


def _wait_for_own_run(client: "CommandClient", stopped: JsonObject) -> JsonObject | None:
    """Return the session's own run once it has ended, or as it is after 30 seconds.

    None if it has no run, or its run was over before the stop.
    """
    if stopped.get("runId") is None or stopped.get("wasOver"):
        return None
    return wait_for_run(client, str(stopped["runId"]), until="ended", seconds_max=STOP_SECONDS_MAX)


def _confirm_run(run: JsonObject) -> None:
    """Ask a person to confirm the run. Raise CommandError if declined, or without a terminal."""
    title = printable_line(run.get("label") or run.get("task") or run.get("taskPreview") or "", 60)
    line = f"{run.get('runId')} ({printable_line(run.get('status'), 20)}) {title}"
    _confirm(line, "its full id", "Stop this run and everything it has spawned?")


def _confirm_session(session: JsonObject) -> None:
    key, stage = printable_line(session.get("sessionKey")), printable_line(session.get("stage"), 20)
    line = f"{key} ({stage}), with {printable_line(session.get('pendingDescendants'), 20)} below it"
    _confirm(line, "its whole key", "Stop this session and everything it has spawned?")


def _confirm(line: str, exact: str, question: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(f"the name matches {line}\nrepeat with {exact}, or with --yes")
    print_note(line)
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was stopped")
