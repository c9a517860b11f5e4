"""Answers as a person or a program wants them: tables, blocks of text, JSON."""

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
    """Items of one or more pages, true at log position `position`.

    `more` is whether the server has others, which begin at `next_cursor`, `next_after`, or, in a
    list with the newest first, `next_before`.
    """

    items: list[JsonObject]
    more: bool
    position: int | None = None
    next_after: int | str | None = None
    next_before: int | None = None
    next_cursor: str | None = None


def print_listing(listing: Listing, columns: Sequence[TableColumn], output: Output) -> None:
    """A list in the wanted form; for a person with a note when there is more of it."""
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
    """Print the option with which a list goes on: the first of these that has a value."""
    name, value = next((one for one in options.items() if one[1] is not None), ("limit", None))
    if value is None:
        print_note("there are more: raise --limit, or narrow the list")
    else:
        print_note(f"there are more: go on with --{name} {printable_line(value, CURSOR_MAX)}")


def print_table(items: Sequence[Item], columns: Sequence[TableColumn]) -> None:
    """A table, cut to the width of a terminal and of full width elsewhere; a note when empty."""
    from rich.console import Console

    if not items:
        print_note("nothing to show")
        return
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        for line in table_lines(items, columns, None):
            print(line.plain)
        return
    for line in table_lines(items, columns, console.width):
        console.print(line, soft_wrap=True)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values below each other; None and empty values are left out."""
    shown = {
        name: printable_line(value, 2000)
        for name, value in fields.items()
        if value not in (None, "")
    }
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{name:<{width}}  {value}")


def print_block(text: str) -> None:
    """A text over its lines, made safe."""
    print(printable_block(text).rstrip("\n"))


def print_json(value: object) -> None:
    """One JSON document. ASCII alone: a terminal that shows it obeys nothing in it."""
    print(json.dumps(value, indent=2))


def print_json_line(value: object) -> None:
    """One JSON document on one line, sent at once."""
    print(json.dumps(value, separators=(",", ":")), flush=True)


def print_object(value: Item, output: Output) -> bool:
    """Print the object unless a table is wanted. Return True if it was printed."""
    if output is Output.JSONL:
        print_json_line(value)
        return True
    return print_document(value, output)


def print_document(value: object, output: Output) -> bool:
    """Print one JSON or YAML document if that is wanted. Return True if it was printed."""
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
    """Print a remark for a person, beside the answer. The caller makes foreign text safe."""
    # Without this a pipe would show remarks before the answers that they follow.
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)
