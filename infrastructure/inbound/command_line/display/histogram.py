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
    buckets = [bucket for bucket in histogram.get("items") or () if isinstance(bucket, dict)]
    print_listing(Listing(buckets, more=False), histogram_columns(buckets), Output.TABLE)


def histogram_columns(buckets: list[JsonObject]) -> tuple[TableColumn, ...]:
    """Return the columns. The bucket with the most events has the longest bar."""
    most = max((_events(bucket) for bucket in buckets), default=0) or 1
    sign = signs_for(getattr(sys.stdout, "encoding", None)).works

    def bar(bucket: Item) -> str:
        events = _events(bucket)
        return sign * max(1, round(events * BAR_CELLS / most)) if events else ""

    return (
        TableColumn("FROM", value_of("firstPosition"), right=True),
        TableColumn("TO", value_of("lastPosition"), right=True),
        TableColumn(
            "SINCE", lambda bucket: format_instant(bucket.get("since") or bucket.get("firstAt"))
        ),
        TableColumn("EVENTS", value_of("events"), right=True),
        TableColumn("", bar),
        TableColumn("ENDED", lambda bucket: _counts(bucket.get("outcomes")), folds=True),
        TableColumn("REFUSED BY", lambda bucket: _counts(bucket.get("rules")), folds=True),
    )


def _events(bucket: Item) -> int:
    events = bucket.get("events")
    return events if isinstance(events, int) else 0


def _counts(counts: object) -> str:
    if not isinstance(counts, dict):
        return ""
    most_first = sorted(counts.items(), key=lambda pair: (-int(pair[1]), pair[0]))
    return ", ".join(f"{count} {name}" for name, count in most_first)
