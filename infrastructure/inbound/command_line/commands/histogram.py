"""`spawnlog event histogram`: how much happened when, and where runs failed or were refused."""

import sys
from typing import Annotated, Literal

import typer

from domain.values.moments import MOMENT_FORMS
from infrastructure.inbound.command_line.client.options import ApiOptions
from infrastructure.inbound.command_line.commands.events import EventOptions
from infrastructure.inbound.command_line.display.output import (
    JsonObject,
    Listing,
    Output,
    print_document,
    print_listing,
    print_note,
)
from infrastructure.inbound.command_line.display.plain_text import printable_line
from infrastructure.inbound.command_line.display.session_tree import signs_for
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

BAR_CELLS = 24
BUCKETS_MAX = 500


def event_histogram(
    buckets: Annotated[
        int, typer.Option(min=1, max=BUCKETS_MAX, help="How many lines at most.")
    ] = 24,
    by: Annotated[
        Literal["position", "time"],
        typer.Option(help="Lines of as many events each, or of as much time."),
    ] = "time",
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help=f"Only after then: {MOMENT_FORMS}.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="Only up to then. Default: now."),
    ] = None,
    *,
    events: EventOptions,
    api: ApiOptions,
) -> None:
    """Count events, outcomes and refusals over time."""
    with api.client() as client:
        parameters = {
            "buckets": buckets,
            "by": by,
            "from": begin,
            "to": end,
            **events.query(client),
        }
        found = client.get("/v1/events/histogram", parameters).value
    if print_document(found, api.output):
        return
    items = [one for one in found.get("items") or () if isinstance(one, dict)]
    print_listing(Listing(items, more=False), histogram_columns(items), api.output)
    counted_to = found.get("countedTo")
    if api.output is Output.TABLE and counted_to is not None:
        print_note(f"only counted up to position {printable_line(counted_to)}: go on with --from")


def histogram_columns(items: list[JsonObject]) -> tuple[TableColumn, ...]:
    """The columns; the longest bar is of the most events."""
    most = max((_events(item) for item in items), default=0) or 1
    sign = signs_for(getattr(sys.stdout, "encoding", None)).works

    def bar(item: Item) -> str:
        events = _events(item)
        return sign * max(1, round(events * BAR_CELLS / most)) if events else ""

    return (
        TableColumn("FROM", value_of("firstPosition"), right=True),
        TableColumn("TO", value_of("lastPosition"), right=True),
        TableColumn("SINCE", lambda item: format_instant(item.get("since") or item.get("firstAt"))),
        TableColumn("EVENTS", value_of("events"), right=True),
        TableColumn("", bar),
        TableColumn("ENDED", lambda item: _counts(item.get("outcomes")), folds=True),
        TableColumn("REFUSED BY", lambda item: _counts(item.get("rules")), folds=True),
    )


def _events(item: Item) -> int:
    events = item.get("events")
    return events if isinstance(events, int) else 0


def _counts(counts: object) -> str:
    if not isinstance(counts, dict):
        return ""
    most_first = sorted(counts.items(), key=lambda pair: (-int(pair[1]), pair[0]))
    return ", ".join(f"{count} {name}" for name, count in most_first)
