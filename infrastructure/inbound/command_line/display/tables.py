"""Tables for a terminal: columns as wide as what stands in them, cut where there is no room."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infrastructure.inbound.command_line.display.plain_text import ELLIPSIS, printable_line

if TYPE_CHECKING:
    from rich.text import Text


Item = Mapping[str, Any]
ELASTIC_CELLS_MIN = 8
GAP = "  "
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

    `coloured` colours words such as `failed`, `right` is for numbers, and an `elastic` column
    gives way when the table is too wide.
    """

    header: str
    shown: Callable[[Item], object]
    coloured: bool = False
    right: bool = False
    elastic: bool = False


def value_of(name: str) -> Callable[[Item], object]:
    """A column's text: the item's value of that name."""
    return lambda item: item.get(name)


def table_lines(
    items: Sequence[Item], columns: Sequence[TableColumn], cells_max: int | None
) -> "Iterator[Text]":
    """The lines of a table, its header first. `cells_max` is the width of the terminal in cells
    (a wide letter takes two), None for one without an end."""
    from rich.cells import cell_len

    rows = [[_cell(column, item) for column in columns] for item in items]
    widths = [
        max(cell_len(text) for text in (column.header, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]
    if cells_max is not None:
        widths = _fit_widths(widths, columns, cells_max)
    yield _line([column.header for column in columns], columns, widths, header=True)
    for row in rows:
        yield _line(row, columns, widths, header=False)


def _fit_widths(widths: list[int], columns: Sequence[TableColumn], cells_max: int) -> list[int]:
    """Widths that fit, as far as elastic columns can give way; the last gives first."""
    fitted = list(widths)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - cells_max
    for index in reversed(range(len(columns))):
        if excess > 0 and columns[index].elastic:
            given = min(excess, max(0, fitted[index] - ELASTIC_CELLS_MIN))
            fitted[index] -= given
            excess -= given
    return fitted


def _line(
    texts: Sequence[str], columns: Sequence[TableColumn], widths: Sequence[int], *, header: bool
) -> "Text":
    from rich.text import Text

    line = Text()
    for index, (text, column, width) in enumerate(zip(texts, columns, widths, strict=True)):
        style = "bold" if header else STATUS_STYLES.get(text, "") if column.coloured else ""
        shown = _truncate(text, width)
        padding = " " * (width - Text(shown).cell_len)
        line.append(GAP if index else "")
        line.append(padding if column.right else "")
        line.append(shown, style=style)
        line.append("" if column.right else padding)
    line.rstrip()
    return line


def _truncate(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + ELLIPSIS


def _cell(column: TableColumn, item: Item) -> str:
    value = column.shown(item)
    return "" if value is None else printable_line(value)
