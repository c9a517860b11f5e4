"""Tables for a terminal: columns as wide as their cells, fitted to the terminal."""

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
    """A column of a table.

    If a table is too wide, elastic columns are cut and folding ones wrapped; then narrow forms are
    used, and optional columns are left out.

    Attributes:
        header: Title of the column.
        shown: Returns the text of an item's cell; None shows nothing.
        coloured: True colors words such as `failed`.
        right: True aligns to the right, for numbers.
        elastic: True if the column may be cut down to `cells_min`.
        cells_min: Minimum width of an elastic column, in cells.
        folds: True if long cells continue on further lines.
        narrow: Returns a shorter text of an item.
        optional: True if the column may be left out.
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
    """Return a function that reads this member of an item."""
    return lambda item: item.get(name)


def table_lines(
    items: Sequence[Item], columns: Sequence[TableColumn], cells_max: int | None
) -> "Iterator[Text]":
    """Yield the lines of a table, its header first.

    Args:
        items: The rows.
        columns: The columns.
        cells_max: Width of the terminal in cells (a wide character takes two), or None if
            unlimited.
    """
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
    """Yield the columns, then their narrow forms, then these with ever fewer optional columns."""
    chosen = list(columns)
    yield chosen
    chosen = [
        column if column.narrow is None else replace(column, shown=column.narrow, narrow=None)
        for column in chosen
    ]
    yield chosen
    while optional := [column for column in chosen if column.optional]:
        chosen = [column for column in chosen if column is not optional[-1]]
        yield chosen


def _natural_widths(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [
        max(cell_len(text) for text in (column.header, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]


def _least_widths(widths: Sequence[int], columns: Sequence[TableColumn]) -> list[int]:
    """Return the minimum useful widths of the columns."""
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
    """Return widths that fit, as far as possible.

    Elastic columns shrink first, the last one first. Then the widest of the folding columns
    shrinks. Minimums are ignored only if nothing else helps.
    """
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
    """Yield the lines of a row: several if a cell is folded."""
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
    """Return the text on lines of `width` cells, broken between words if possible."""
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
    """Split a word into pieces of `width` cells, after punctuation if possible."""
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
