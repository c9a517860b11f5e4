"""Output for a person or a program: tables, fields, text, JSON and YAML."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infrastructure.inbound.command_line.display.output_form import Output
from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, table_lines
from infrastructure.inbound.command_line.display.yaml_text import yaml_lines

JsonObject = dict[str, Any]
CURSOR_MAX = 2048


@dataclass(frozen=True, slots=True)
class Listing:
    """Items of one or more pages, as of log position `position`.

    `more` is True if the server has further items. They begin at `next_cursor`, `next_after` or, in
    a list sorted newest first, `next_before`.
    """

    items: list[JsonObject]
    more: bool
    position: int | None = None
    next_after: int | str | None = None
    next_before: int | None = None
    next_cursor: str | None = None


def print_listing(listing: Listing, columns: Sequence[TableColumn], output: Output) -> None:
    """Print a list in the requested form. A table has a note if there are more items."""
    whole = {
        "items": listing.items,
        "more": listing.more,
        "nextAfter": listing.next_after,
        "nextBefore": listing.next_before,
        "nextCursor": listing.next_cursor,
    }
    if print_document(whole, output):
        return
    if output is Output.JSONL:
        for item in listing.items:
            print_json_line(item)
    else:
        print_table(listing.items, columns)
        if listing.more:
            note_more(
                cursor=listing.next_cursor, after=listing.next_after, before=listing.next_before
            )


def note_more(**options: str | int | None) -> None:
    """Print the option that continues a list: the first of these with a value."""
    given = ((name, value) for name, value in options.items() if value is not None)
    name, value = next(given, ("limit", None))
    if value is None:
        print_note("there are more: raise --limit or add filters")
    else:
        print_note(f"there are more: continue with --{name} {printable_line(value, CURSOR_MAX)}")


def print_table(items: Sequence[Item], columns: Sequence[TableColumn]) -> None:
    """Print a table, cut to the width of a terminal and full elsewhere, or a note if empty."""
    from rich.console import Console

    if not items:
        print_note("no entries")
        return
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        for line in table_lines(items, columns, None):
            print(line.plain)
        return
    for line in table_lines(items, columns, console.width):
        console.print(line, soft_wrap=True)


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one per line. Empty values are left out."""
    shown = {
        name: printable_line(value, 2000)
        for name, value in fields.items()
        if value not in (None, "")
    }
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{name:<{width}}  {value}")


def print_block(text: str) -> None:
    """Print a text of several lines, with control characters escaped."""
    print(printable_block(text).rstrip("\n"))


def print_json(value: object) -> None:
    """Print one JSON document. It is pure ASCII, so that a terminal interprets nothing in it."""
    print(json.dumps(value, indent=2))


def print_json_line(value: object) -> None:
    """Print one JSON document on one line and flush it."""
    print(json.dumps(value, separators=(",", ":")), flush=True)


def print_object(value: Item, output: Output) -> bool:
    """Print the object, unless the output is a table. Return True if it was printed."""
    if output is Output.JSONL:
        print_json_line(value)
        return True
    return print_document(value, output)


def print_document(value: object, output: Output) -> bool:
    """Print one JSON or YAML document if that is the output. Return True if it was printed."""
    if output is Output.JSON:
        print_json(value)
    elif output is Output.YAML:
        print_yaml(value)
    return output in (Output.JSON, Output.YAML)


def print_yaml(value: object) -> None:
    """Print one YAML document."""
    for line in yaml_lines(value):
        print(line)


def print_note(text: str) -> None:
    """Print a note on stderr. The caller escapes foreign text."""
    # Flush the answer first: in a pipe, notes would otherwise precede it.
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)
