"""`spawnlog session tree` and `run tree`: a session and everything below it."""

from typing import TYPE_CHECKING, Annotated

from infrastructure.inbound.command_line.client.described import OperationOptions, OptionsOf
from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    ApiOptions,
    RunName,
)
from infrastructure.inbound.command_line.display.failures import ResourceNotFoundError
from infrastructure.inbound.command_line.display.output import (
    print_document,
    print_json_line,
    print_note,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.session_tree import flat_nodes, print_session_tree
from spawnlog.core.request import path_of

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient


def session_tree(
    given: Annotated[OperationOptions, OptionsOf("getSessionTree")], *, api: ApiOptions
) -> None:
    """Draw a session and everything below it, with time bars."""
    with api.client() as client:
        path = given.path(client, "/v1/sessions/{key}/tree")
        _show(client, path, given, api.output)


def run_tree(
    name: RunName,
    given: Annotated[OperationOptions, OptionsOf("getSessionTree", without=("key",))],
    *,
    api: ApiOptions,
) -> None:
    """Draw a run's session and everything below it, with time bars."""
    with api.client() as client:
        run_id = find_run(client, name).run_id
        key = client.get(path_of("runs", run_id)).value.get("childSessionKey")
        if not isinstance(key, str):
            raise ResourceNotFoundError(
                f"run {run_id} has no session, so nothing is below it; see `spawnlog run get`"
            )
        _show(client, path_of("sessions", key, "tree"), given, api.output)


def _show(client: "CommandClient", path: str, given: OperationOptions, output: Output) -> None:
    answer = client.get(path, given.query(client))
    tree = answer.value
    if print_document(tree, output):
        return
    if output is Output.JSONL:
        for node in flat_nodes(tree.get("root") or {}):
            print_json_line(node)
    else:
        # Active runs have continued since the last event: their bars end at the time of the answer.
        print_session_tree(tree, None if given["at"] else answer.sent_at)
        if tree.get("cut"):
            shown = printable_line(tree.get("nodes"))
            print_note(f"only {shown} sessions are shown: raise --limit or --depth for more")
