"""`spawnlog event list`: the log itself, page by page or live."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from infrastructure.inbound.command_line.client.find_run import find_run
from infrastructure.inbound.command_line.client.options import (
    AfterPosition,
    ApiOptions,
    AsOfOption,
    LimitOption,
    RunOption,
    TreeOption,
)
from infrastructure.inbound.command_line.display.event_line import event_facts
from infrastructure.inbound.command_line.display.failures import CommandFailed
from infrastructure.inbound.command_line.display.forms import short_id
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Output,
    print_json_line,
    print_listing,
    print_note,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.tables import TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

if TYPE_CHECKING:
    from infrastructure.inbound.command_line.client.client import CommandClient

_COLUMNS = (
    TableColumn("POSITION", value_of("position"), right=True),
    TableColumn(
        "TIME",
        lambda event: format_instant(event.get("recordedAt")),
        narrow=lambda event: format_instant(event.get("recordedAt"))[5:19],
    ),
    TableColumn("RUN", lambda event: short_id(event.get("runId"))),
    TableColumn("EVENT", value_of("type")),
    TableColumn("FACTS", event_facts, folds=True),
)


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Which events of the log are meant."""

    event_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only such events; may be repeated.",
            show_default=False,
        ),
    ] = None
    run: RunOption = None
    tree: TreeOption = None

    def query(self, client: "CommandClient") -> dict[str, str | int | None]:
        """The same as parameters; a name of a run is looked up. CommandFailed for several types in
        one word."""
        if any("," in name for name in self.event_type or ()):
            raise CommandFailed("give one type with each --type")
        return {
            "types": ",".join(self.event_type) if self.event_type else None,
            "runId": find_run(client, self.run).run_id if self.run else None,
            "tree": self.tree,
        }


def list_events(
    after: AfterPosition = None,
    before: Annotated[
        int | None,
        typer.Option(min=1, metavar="POSITION", help="Only before it, the newest first."),
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="The newest first.")] = False,
    actor: Annotated[
        str | None,
        typer.Option(
            metavar="WHO",
            help="Only on this word: token, child, anybody, system, a token's id, a session's key.",
        ),
    ] = None,
    at: AsOfOption = None,
    limit: LimitOption = 50,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show events as they happen, until Ctrl-C.")
    ] = False,
    *,
    events: EventOptions,
    api: ApiOptions,
) -> None:
    """Show the log in order, or follow it."""
    with api.client() as client:
        parameters = {"after": after, "actor": actor, **events.query(client)}
        if follow and (newest or before is not None or at is not None):
            raise CommandFailed("--follow goes on from now: leave --newest, --before and --at out")
        if not follow:
            parameters |= {"before": before, "order": "desc" if newest else None, "at": at}
            listing = client.items("/v1/events", parameters, limit=limit)
            print_listing(listing, _COLUMNS, api.output)
            return
        from infrastructure.inbound.command_line.client.follow import follow_events as followed

        if api.output not in (Output.JSONL, Output.TABLE):
            raise CommandFailed("a stream has no end: follow it with --output jsonl or table")
        print_note("following the log; Ctrl-C ends it")
        for event in followed(client, parameters):
            if api.output is Output.JSONL:
                print_json_line(event)
            else:
                print(_line(event), flush=True)


def _line(event: JsonObject) -> str:
    """An event on a line of its own: a stream has no table whose columns could be measured."""
    return (
        f"{printable_line(event.get('position')):>8}  {format_instant(event.get('recordedAt'))}  "
        f"{short_id(event.get('runId')):8}  {printable_line(event.get('type'), 40):24}  "
        f"{event_facts(event)}"
    ).rstrip()
