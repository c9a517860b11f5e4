"""Two compared runs in a terminal: a row per difference, and the diffs of texts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infrastructure.inbound.command_line.display.output import JsonObject, print_note, print_table
from infrastructure.inbound.command_line.display.patches import short_value
from infrastructure.inbound.command_line.display.plain_text import (
    printable_block,
    printable_line,
    text_of,
)
from infrastructure.inbound.command_line.display.tables import Item, TableColumn, value_of

_COMPARE_COLUMNS = (
    TableColumn("PART", value_of("part")),
    TableColumn("WHAT", value_of("what"), folds=True),
    TableColumn("LEFT", value_of("left"), folds=True),
    TableColumn("RIGHT", value_of("right"), folds=True),
)


def print_comparison(compared: JsonObject) -> None:
    """Print the differences between two runs."""
    for side in ("left", "right"):
        run = compared.get(side) or {}
        label, status = printable_line(run.get("label") or ""), printable_line(run.get("status"))
        print_note(f"{side}: run {printable_line(run.get('runId'))} {label} {status}".rstrip())
    rows = list(_comparison_rows(compared))
    if rows:
        print_table(rows, _COMPARE_COLUMNS)
    prompt = compared.get("prompt")
    if prompt is None:
        print_note("prompts and transcripts need a token with the scope content")
    for part in (prompt or {}).get("parts") or ():
        if part.get("diff"):
            print(f"\n{printable_line(part.get('of'))}, {printable_line(part.get('source'))}:")
            _print_diff(str(part["diff"]))
    if compared.get("same") is True:
        print_note("no differences")


def _comparison_rows(compared: JsonObject) -> Iterator[Item]:
    for name_of_section in ("request", "plan", "outcome"):
        section = compared.get(name_of_section) or {}
        left, right = section.get("left") or {}, section.get("right") or {}
        for name in dict.fromkeys((*left, *right)):
            if left.get(name) != right.get(name):
                yield _row(name_of_section, name, left.get(name), right.get(name))
        for name in section.get("erased") or ():
            yield _row(name_of_section, name, "erased", "erased")
        if name_of_section == "request":
            yield from _decision_rows(compared.get("decisions") or ())
    for part in (compared.get("prompt") or {}).get("parts") or ():
        if part.get("verdict") != "equal":
            subject = f"{part.get('of')}, {part.get('source')}: {part.get('verdict')}"
            yield _row(
                "prompt", subject.replace("_", " "), _size(part, "left"), _size(part, "right")
            )
    transcript = compared.get("transcript") or {}
    first = transcript.get("firstDifference")
    if first is not None:
        subject = f"after {transcript.get('equalEntries')} equal entries"
        yield _row("transcript", subject, _entry(first.get("left")), _entry(first.get("right")))
    if transcript.get("erased") and not transcript.get("same"):
        yield _row("transcript", "entries", "erased", "erased")


def _decision_rows(decisions: Sequence[JsonObject]) -> Iterator[Item]:
    for decision in decisions:
        if not decision.get("same"):
            sides = decision.get("left") or {}, decision.get("right") or {}
            texts = [f"{side['result']}: {side['text']}" if side else None for side in sides]
            if texts[0] == texts[1]:
                # The texts are equal, so show the compared values that differ.
                compared, other = (side.get("compared") or {} for side in sides)
                differing = [name for name in compared if compared[name] != other.get(name)]
                texts = [
                    ", ".join(f"{name} {text_of(side.get(name))}" for name in differing)
                    for side in (compared, other)
                ]
            yield _row("decision", decision.get("rule"), *texts)


def _row(part: str, subject: object, left: object, right: object) -> Item:
    return {"part": part, "what": subject, "left": short_value(left), "right": short_value(right)}


def _size(part: Item, side: str) -> str | None:
    piece = part.get(side)
    return f"{piece.get('bytes')} B" if isinstance(piece, Mapping) else None


def _entry(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return "the end"
    return f"[{entry.get('sequence')}] {entry.get('kind')} {short_value(entry.get('body'))}"


def _print_diff(text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    for line in printable_block(text).split("\n"):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        console.print(Text(line, style=style), soft_wrap=True)
