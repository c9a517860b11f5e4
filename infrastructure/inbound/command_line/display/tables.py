"""Tables for a terminal: columns as wide as their cells, fitted to the width of the terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infrastructure.inbound.command_line.display.plain_text import ELLIPSIS, printable_line

if TYPE_CHECKING:
    from rich.text import Text


Item = Mapping[str, Any]
ELASTIC_CELLS_MIN = 8
FOLDED_CELLS_MIN = 24
GAP = "  "
_BREAKS = "./:,="
STATUS_STYLES = {
    "done": "green",
    "success": "green",
    "running": "cyan",
    "queued": "yellow",
    "waiting": "yellow",
    "preparing": "yellow",
    "failed": "red",
    "error": "red",
    "timeout": "red",
    "refused": "magenta",
    "stopped": "magenta",
    "unknown": "magenta",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column. `shown` makes the cell's text from an item; None shows as nothing.

    `coloured` colours words such as `failed`, `right` is for numbers. If a table is too wide, an
    `elastic` column is cut, down to `cells_min`, and one that `folds` continues on further lines.
    If that is not enough, `narrow` makes a shorter text, and an `optional` column is left out.
    """

    header: str
    shown: Callable[[Item], object]
    coloured: bool = False
    right: bool = False
    elastic: bool = False
    cells_min: int = ELASTIC_CELLS_MIN
    folds: bool = False
    narrow: Callable[[Item], object] | None = None
    optional: bool = False


def value_of(name: str) -> Callable[[Item], object]:
    """A column's text: the item's value of that name."""
    return lambda item: item.get(name)


def table_lines(
    items: Sequence[Item], columns: Sequence[TableColumn], cells_max: int | None
) -> "Iterator[Text]":
    """The lines of a table, its header first. `cells_max` is the width of the terminal in cells
    (a wide letter takes two), None for one without an end."""
    for candidate in _candidates(columns):
        rows = [[_cell(column, item) for column in candidate] for item in items]
        widths = _natural_widths(candidate, rows)
        if cells_max is None or _total(_least_widths(widths, candidate)) <= cells_max:
            break
    if cells_max is not None:
        widths = _fit_widths(widths, candidate, cells_max)
    yield from _lines([column.header for column in candidate], candidate, widths, header=True)
    for row in rows:
        yield from _lines(row, candidate, widths, header=False)


def _candidates(columns: Sequence[TableColumn]) -> Iterator[list[TableColumn]]:
    """Yield the columns as they are, then narrower forms of them, then fewer and fewer."""
    chosen = list(columns)
    yield chosen
    chosen = [
        one if one.narrow is None else replace(one, shown=one.narrow, narrow=None) for one in chosen
    ]
    yield chosen
    while optional := [one for one in chosen if one.optional]:
        chosen = [one for one in chosen if one is not optional[-1]]
        yield chosen


def _natural_widths(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max(cell_len(text) for text in (column.header, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]


def _least_widths(widths: Sequence[int], columns: Sequence[TableColumn]) -> list[int]:
    """Return the widths below which a column would not serve its purpose."""
    return [
        min(width, _least(column, width)) for width, column in zip(widths, columns, strict=True)
    ]


def _least(column: TableColumn, width: int) -> int:
    if column.folds:
        return FOLDED_CELLS_MIN
    return column.cells_min if column.elastic else width


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fit_widths(widths: list[int], columns: Sequence[TableColumn], cells_max: int) -> list[int]:
    """Return widths that fit, as far as columns can give way: elastic ones first, the last of them
    first; then the widest of those that fold; below their minimum only if there is no other way."""
    fitted = list(widths)
    least = _least_widths(widths, columns)
    giving = [index for index in reversed(range(len(columns))) if columns[index].elastic]
    for index in giving:
        fitted[index] -= min(max(0, _total(fitted) - cells_max), fitted[index] - least[index])
    folding = [index for index, column in enumerate(columns) if column.folds]
    for floor in (FOLDED_CELLS_MIN, ELASTIC_CELLS_MIN):
        while folding and _total(fitted) > cells_max:
            widest = max(folding, key=lambda index: fitted[index])
            if fitted[widest] <= floor:
                break
            fitted[widest] -= 1
    for index in giving:
        room = max(0, fitted[index] - ELASTIC_CELLS_MIN)
        fitted[index] -= min(max(0, _total(fitted) - cells_max), room)
    return fitted


def _lines(
    texts: Sequence[str], columns: Sequence[TableColumn], widths: Sequence[int], *, header: bool
) -> "Iterator[Text]":
    """Yield the line of a row, and further ones for cells that are folded."""
    folded = [
        _folded(text, width) if column.folds and not header else [_truncate(text, width)]
        for text, column, width in zip(texts, columns, widths, strict=True)
    ]
    for number in range(max(map(len, folded))):
        parts = [lines[number] if number < len(lines) else "" for lines in folded]
        yield _line(parts, texts, columns, widths, header=header)


def _line(
    parts: Sequence[str],
    texts: Sequence[str],
    columns: Sequence[TableColumn],
    widths: Sequence[int],
    *,
    header: bool,
) -> "Text":
    from rich.text import Text

    line = Text()
    for index, (shown, text, column, width) in enumerate(
        zip(parts, texts, columns, widths, strict=True)
    ):
        style = "bold" if header else STATUS_STYLES.get(text, "") if column.coloured else ""
        padding = " " * (width - Text(shown).cell_len)
        line.append(GAP if index else "")
        line.append(padding if column.right else "")
        line.append(shown, style=style)
        line.append("" if column.right else padding)
    line.rstrip()
    return line


def _folded(text: str, width: int) -> list[str]:
    """Return the text on lines of `width` cells, broken between words where that is possible."""
    from rich.cells import cell_len

    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
            continue
        lines = [*(lines if lines[-1] else []), *_pieces(word, width)]
    return lines


def _pieces(word: str, width: int) -> list[str]:
    """Return a word that is too long in pieces of `width` cells, broken behind a sign if it can."""
    from rich.cells import cell_len, chop_cells

    pieces = []
    while cell_len(word) > width:
        piece = chop_cells(word, width)[0]
        place = max(piece.rfind(sign) for sign in _BREAKS) + 1
        pieces.append(piece[:place] if 2 * place > len(piece) else piece)
        word = word[len(pieces[-1]) :]
    return [*pieces, word]


def _truncate(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + ELLIPSIS


def _cell(column: TableColumn, item: Item) -> str:
    value = column.shown(item)
    return "" if value is None else printable_line(value)
