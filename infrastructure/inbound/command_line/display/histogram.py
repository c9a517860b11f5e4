"""A histogram in a terminal: one line with a bar per bucket."""

import sys

from infrastructure.inbound.command_line.display.output import JsonObject, Listing, print_listing
from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.session_tree import signs_for
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of
from infrastructure.inbound.command_line.display.times import format_instant

BAR_CELLS = 24


def print_histogram(histogram: JsonObject) -> None:
    """Print the buckets of a histogram."""
    items = [bucket for bucket in histogram.get("items") or () if isinstance(bucket, dict)]
    print_listing(Listing(items, more=False), histogram_columns(items), Output.TABLE)


def histogram_columns(items: list[JsonObject]) -> tuple[TableColumn, ...]:
    """Return the columns. The bucket with the most events has the longest bar."""
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
