"""`spawnlog session tree` and `spawnlog run tree`: a session and all below it."""

from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    AsOfOption,
    RunName,
    SessionName,
)
from infrastructure.inbound.command_line.display.failures import NotFound
from infrastructure.inbound.command_line.display.output import (
    Output,
    print_document,
    print_json_line,
    print_note,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.session_tree import flat_nodes, print_session_tree
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

NODES_MAX = 2_000
NodesOption = Annotated[
    int, typer.Option("--limit", min=1, max=NODES_MAX, help="How many sessions at most.")
]
LevelsOption = Annotated[
    int, typer.Option("--depth", min=0, max=64, help="How many levels below it at most.")
]


def session_tree(
    session: SessionName,
    at: AsOfOption = None,
    limit: NodesOption = 500,
    depth: LevelsOption = 64,
    *,
    api: ApiOptions,
) -> None:
    """Draw a session and all below it, with bars of time."""
    with api.client() as client:
        _show(client, session, at, limit, depth, api.output)


def run_tree(
    name: RunName,
    at: AsOfOption = None,
    limit: NodesOption = 500,
    depth: LevelsOption = 64,
    *,
    api: ApiOptions,
) -> None:
    """Draw the session of a run and all below it."""
    with api.client() as client:
        run_id = find_run(client, name).run_id
        key = client.get(path_of("runs", run_id)).value.get("childSessionKey")
        if not isinstance(key, str):
            raise NotFound(
                f"run {run_id} has no session, so nothing is below it; see `spawnlog run get`"
            )
        _show(client, key, at, limit, depth, api.output)


def _show(
    client: "CommandClient", session: str, at: str | None, limit: int, depth: int, output: Output
) -> None:
    query: dict[str, str | int | None] = {"at": at, "limit": limit, "depth": depth}
    answer = client.get(path_of("sessions", session, "tree"), query)
    found = answer.value
    if print_document(found, output):
        return
    if output is Output.JSONL:
        for node in flat_nodes(found.get("root") or {}):
            print_json_line(node)
    else:
        # What is at work now has gone on since the last event.
        print_session_tree(found, None if at else answer.sent_at)
        if found.get("cut"):
            shown = printable_line(found.get("nodes"))
            print_note(f"{shown} sessions are shown and there are more: raise --limit or --depth")
