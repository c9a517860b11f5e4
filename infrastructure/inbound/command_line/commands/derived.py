"""Commands derived from the descriptions of operations: options, request and output."""

import uuid
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from infrastructure.inbound.command_line.client.deferred import load
from infrastructure.inbound.command_line.client.described import (
    DescribedOperation,
    OperationOptions,
    OptionsOf,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.forms import print_described, table_columns
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    print_listing,
    print_note,
    print_object,
    print_yaml,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of

DIFFERS = 1
_PLACE = "place"
DISPLAYS: Mapping[str, str] = {
    "getSummary": "display.summary:print_summary",
    "listLanes": "display.lanes:print_lanes",
    "getRun": "display.run:print_run_texts",
    "listRunEvents": "display.run_records:print_run_events",
    "getRunPrompt": "display.run_records:print_prompt",
    "explainRun": "display.run_records:print_explanation",
    "compareRuns": "display.comparison:print_comparison",
    "countEvents": "display.histogram:print_histogram",
    "getSession": "display.session:print_session_runs",
    "getSharedContext": "display.session:print_shared_context",
    "getLogHead": "display.verifications:print_verifications",
}
"""Functions that print an answer for a person, by operation.

Such a function replaces the table, or prints after the fields.
"""
Display = Callable[[Any], None]


def derived_function(operation: DescribedOperation) -> Callable[..., None]:
    """Return the function that runs the command of an operation."""

    def run(given: OperationOptions, *, api: ApiOptions) -> None:
        place = DISPLAYS.get(operation.name)
        display = None if place is None else load(place)
        if operation.paged:
            _list(operation, given, api, display)
        else:
            _ask(operation, given, api, display)

    run.__doc__ = operation.help
    run.__annotations__["given"] = Annotated[OperationOptions, OptionsOf(operation.name)]
    return run


def _list(
    operation: DescribedOperation, given: OperationOptions, api: ApiOptions, display: Display | None
) -> None:
    limit = int(given.values.get("limit") or operation.limit)
    with api.client() as client:
        query = given.query(client, without=("limit",))
        listing = client.items(given.path(client, operation.path), query, limit=limit)
    if display is not None and api.output is Output.TABLE:
        display(listing)
        return
    columns = table_columns(operation.columns, listing.items)
    if operation.numbered and api.output is Output.TABLE and not any(query.values()):
        # In a filtered or past list `#N` would name another run than in the list of now.
        for number, item in enumerate(listing.items, 1):
            item[_PLACE] = f"#{number}"
        columns = (TableColumn("", value_of(_PLACE), right=True), *columns)
    print_listing(listing, columns, api.output)


def _ask(
    operation: DescribedOperation, given: OperationOptions, api: ApiOptions, display: Display | None
) -> None:
    with api.client() as client:
        path = given.path(client, operation.path)
        if operation.method == "GET":
            answer = client.get(path, given.query(client)).value
        else:
            key = str(uuid.uuid4()) if operation.takes_key else None
            body = given.body(client)
            answer = client.write(operation.method, path, body, idempotency_key=key).value
    if operation.items is not None and api.output is Output.JSONL:
        print_listing(Listing(answer.get(operation.items) or [], more=False), (), api.output)
    elif not print_object(answer, api.output):
        if display is None or operation.fields:
            _print_answer(operation, answer, {**answer, **given.typed("path")})
        if display is not None:
            display(answer)
        for member, note in operation.notes.items():
            if answer.get(member):
                print_note(note.format_map(_printable(answer)))
    if operation.differs is not None and answer.get(operation.differs) is not True:
        raise typer.Exit(DIFFERS)


def _print_answer(
    operation: DescribedOperation, answer: JsonObject, members: Mapping[str, Any]
) -> None:
    """Print an answer for a person. The sentence of a command may name any of `members`."""
    if operation.done is not None:
        print(operation.done.format_map(_printable(members)))
    elif operation.items is not None:
        items = answer.get(operation.items) or []
        columns = table_columns(operation.columns, items)
        print_listing(Listing(items, more=False), columns, Output.TABLE)
    elif operation.fields:
        print_described(answer, operation.fields)
    else:
        print_yaml(answer)


def _printable(members: Mapping[str, Any]) -> Mapping[str, str]:
    return {
        name: ", ".join(map(printable_line, value))
        if isinstance(value, list)
        else printable_line(value)
        for name, value in members.items()
    }
