"""`spawnlog event list`: the events of the log, by page or live."""

from typing import Annotated

import typer

from infrastructure.inbound.command_line.client.described import (
    OperationOptions,
    OptionsOf,
    columns_of,
    is_typed,
)
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandError
from infrastructure.inbound.command_line.display.forms import short_id, table_columns
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    print_json_line,
    print_listing,
    print_note,
)
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.times import format_instant


def list_events(
    context: typer.Context,
    given: Annotated[OperationOptions, OptionsOf("listEvents")],
    newest: Annotated[bool, typer.Option("--newest", help="Show the newest events first.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show events as they happen, until Ctrl-C.")
    ] = False,
    *,
    api: ApiOptions,
) -> None:
    """Show the events of the log in order, or follow them."""
    with api.client() as client:
        parameters = given.query(client, without=("limit",))
        if follow and (newest or given["before"] is not None or given["at"] is not None):
            raise CommandError("--follow runs forward: leave --newest, --before and --at out")
        if follow and is_typed(context, "limit"):
            raise CommandError("--follow runs until Ctrl-C: leave --limit out")
        if not follow:
            parameters["order"] = "desc" if newest else None
            listing = client.items("/v1/events", parameters, limit=given["limit"])
            print_listing(listing, table_columns(columns_of("listEvents")), api.output)
            return
        from infrastructure.inbound.command_line.client.follow import follow_events as followed

        if api.output not in (Output.JSONL, Output.TABLE):
            raise CommandError("--follow prints no single document: use --output jsonl or table")
        print_note("following the log; Ctrl-C stops")
        for event in followed(client, parameters):
            if api.output is Output.JSONL:
                print_json_line(event)
            else:
                print(_line(event), flush=True)


def _line(event: JsonObject) -> str:
    """Return one line for an event. A stream has no table whose columns could be measured."""
    return (
        f"{printable_line(event.get('position')):>8}  {format_instant(event.get('recordedAt'))}  "
        f"{short_id(event.get('runId')):8}  {printable_line(event.get('type'), 40):24}  "
        f"{event_facts(event)}"
    ).rstrip()
