"""`spawnlog subagents`: a session's sub-agents, with the texts and numbers of `/subagents`."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.contract.subagents import (
    Subagent,
    Subagents,
    TargetError,
    UnknownTargetError,
    find_subagent,
    info_text,
    list_text,
    log_text,
    subagents_of,
)
from infrastructure.inbound.command_line.client.arguments import read_text_argument
from infrastructure.inbound.command_line.client.options import ApiPlace, RequesterOption
from infrastructure.inbound.command_line.client.wait import await_run, has_reached, wait_for_run
from infrastructure.inbound.command_line.commands.run.run_records import LAST_ENTRIES_MAX
from infrastructure.inbound.command_line.commands.run.stop import (
    ALL_RUNS,
    note_active,
    stop_and_wait,
)
from infrastructure.inbound.command_line.display.failures import CommandError, ResourceNotFoundError
from infrastructure.inbound.command_line.display.output import JsonObject, print_block
from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


RUNS_MAX = 1_000
"""Number of the newest runs of a session that are searched."""

REPLY_SECONDS = 30.0
LOG_ENTRIES_MAX = 200
_STEER_FAILED = "send failed: {why}"
Target = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Number in the list (#), prefix of a run id or label, session key, or last.",
    ),
]
MessageText = Annotated[
    str, typer.Argument(metavar="MESSAGE", help="Text to send; - reads standard input.")
]


def list_subagents(requester: RequesterOption = "main", *, api: ApiPlace) -> None:
    """List active sub-agents, and those ended in the last 30 minutes.

    Prints text for people. Programs read `spawnlog run list --requester KEY -o json`.
    """
    with api.client() as client:
        known = _subagents(client, requester)
    print_block(list_text(known))


def show_info(target: Target, requester: RequesterOption = "main", *, api: ApiPlace) -> None:
    """Show everything about a sub-agent."""
    with api.client() as client:
        subagent = _find(_subagents(client, requester), target)
        run = client.get(path_of("runs", subagent.run_id)).value
    print_block(info_text(replace(subagent, run=run)))


def show_log(
    target: Target,
    limit: Annotated[
        int, typer.Argument(metavar="LIMIT", min=1, max=LOG_ENTRIES_MAX, help="Number of messages.")
    ] = 20,
    tools: Annotated[
        str | None, typer.Argument(metavar="tools", help="The word `tools`: also show tool calls.")
    ] = None,
    requester: RequesterOption = "main",
    *,
    api: ApiPlace,
) -> None:
    """Show the last messages of a sub-agent's run."""
    if tools not in (None, "tools"):
        raise CommandError("📜 Usage: /subagents log <id|#> [limit] [tools]")
    # Progress entries are not printed, so more entries are read than `limit`.
    query: JsonObject = {"last": LAST_ENTRIES_MAX, "tools": "true" if tools else None}
    with api.client() as client:
        subagent = _find(_subagents(client, requester), target)
        page = client.get(path_of("runs", subagent.run_id, "transcript"), query).value
    print_block(log_text(subagent, page.get("items") or (), limit))


def send(
    target: Target, message: MessageText, requester: RequesterOption = "main", *, api: ApiPlace
) -> None:
    """Send a message to a sub-agent, and wait 30 seconds for the answer."""
    text = read_text_argument(message, "message")
    with api.client() as client:
        subagent = _find(_subagents(client, requester), target)
        sent = _post(client, subagent, {"message": text})
        run_id = str(sent.get("runId"))
        short = run_id[: len(subagent.short_id)]
        if sent.get("status") == "queued":
            print_block(f"✅ Sent to {subagent.label} (run {short}).")
            return
        run = wait_for_run(client, run_id, until="ended", seconds_max=REPLY_SECONDS)
    if not has_reached(run, "ended"):
        print_block(f"⏳ Subagent still running (run {short}).")
    elif run.get("outcome") != "success":
        why = run.get("error") or run.get("outcome")
        print_block(f"⚠️ Subagent error: {why} (run {short}).")
    else:
        print_block(str(run.get("resultText") or f"✅ Sent to {subagent.label} (run {short})."))


def steer(
    target: Target, message: MessageText, requester: RequesterOption = "main", *, api: ApiPlace
) -> None:
    """End a sub-agent's run and continue with a message in its place."""
    text = read_text_argument(message, "message")
    with api.client() as client:
        subagent = _find(_subagents(client, requester), target)
        try:
            sent = _post(client, subagent, {"message": text, "mode": "steer"})
        except CommandError as failed:
            why = printable_line(failed.message, 1000)
            raise type(failed)(_STEER_FAILED.format(why=why), failed.problem) from None
        if sent.get("status") == "done":
            print_block(str(sent.get("text")))
            return
        await_run(client, str(sent.get("runId")), str(sent.get("childSessionKey")))
    print_block(
        f"steered {subagent.label} (run {str(sent.get('runId'))[: len(subagent.short_id)]})."
    )


def stop(
    target: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Sub-agent, as for `subagents info`; all: every active one."
        ),
    ],
    requester: RequesterOption = "main",
    *,
    api: ApiPlace,
) -> None:
    """Stop a sub-agent and all below it; prints nothing on success."""
    with api.client() as client:
        known = _subagents(client, requester)
        if target in ALL_RUNS:
            stopped = known.active
        else:
            subagent = _find(known, target)
            if not subagent.is_active:
                print_block(f"{subagent.label} is already finished.")
                return
            stopped = (subagent,)
        runs = stop_and_wait(client, [subagent.run_id for subagent in stopped], {})
    note_active(runs)


def _find(known: Subagents, target: str) -> Subagent:
    try:
        return find_subagent(known, target)
    except UnknownTargetError as error:
        raise ResourceNotFoundError(str(error)) from None
    except TargetError as error:
        raise CommandError(str(error)) from None


def _post(client: "CommandClient", subagent: Subagent, body: JsonObject) -> JsonObject:
    path = path_of("runs", subagent.run_id, "messages")
    return client.post(path, body, idempotency_key=str(uuid.uuid4())).value


def _subagents(client: "CommandClient", requester: str) -> Subagents:
    """Return the children of a session.

    For a child that has ended but is not announced, also ask how many descendants it waits for.
    """
    runs = client.items("/v1/runs", {"requester": requester}, limit=RUNS_MAX).items
    known = subagents_of(runs, datetime.now(UTC))
    active = tuple(_with_pending(client, subagent) for subagent in known.active)
    return Subagents(active, known.recent)


def _with_pending(client: "CommandClient", subagent: Subagent) -> Subagent:
    if subagent.run.get("stage") != "ended":
        return subagent
    session = client.get(path_of("sessions", str(subagent.run.get("childSessionKey")))).value
    return replace(subagent, pending=int(session.get("pendingDescendants") or 0))
