"""A tree of sessions in a terminal: branches, status, and bars on a common time scale."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infrastructure.inbound.command_line.display.plain_text import ELLIPSIS, printable_line
from infrastructure.inbound.command_line.display.tables import GAP, STATUS_STYLES
from infrastructure.inbound.command_line.display.times import (
    format_duration,
    format_instant,
    milliseconds_between,
    parse_instant,
)

if TYPE_CHECKING:
    from rich.text import Text

Node = Mapping[str, Any]
WIDTH_CELLS = 100
"""Width if the output is not a terminal."""

NAME_CELLS_MAX = 48
BAR_CELLS_MIN = 10
_OVER = ("ended", "announced", "archived", "refused")


@dataclass(frozen=True, slots=True)
class TreeSigns:
    """Characters of a drawing: three cells per branch, one per part of a bar.

    `waits` fills a bar until a run starts, `works` until it ends.
    """

    branch: str
    last: str
    line: str
    waits: str
    works: str
    cut: str


BOXES = TreeSigns("├─ ", "└─ ", "│  ", "░", "█", ELLIPSIS)
ASCII = TreeSigns("|- ", "`- ", "|  ", ".", "#", "...")


def signs_for(encoding: str | None) -> TreeSigns:
    """Return the characters that a terminal of this encoding can show."""
    try:
        "".join((BOXES.branch, BOXES.last, BOXES.line, BOXES.waits, BOXES.works, BOXES.cut)).encode(
            encoding or "ascii"
        )
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BOXES


def print_session_tree(tree: Mapping[str, Any], now: datetime | None = None) -> None:
    """Draw the answer of `/v1/sessions/{key}/tree`, as wide as the terminal.

    Bars of active runs end at the moment of the tree or, if it is later, at `now`.
    """
    from rich.console import Console

    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    signs = signs_for(getattr(sys.stdout, "encoding", None))
    if not console.is_terminal:
        for line in tree_lines(tree, WIDTH_CELLS, signs, now):
            print(line.plain)
        return
    for line in tree_lines(tree, console.width, signs, now):
        console.print(line, soft_wrap=True)


def flat_nodes(root: Node) -> Iterator[dict[str, Any]]:
    """Yield each node without its children, parents first, with the key of its parent."""
    waiting: list[tuple[Node, str | None]] = [(root, None)]
    while waiting:
        node, above = waiting.pop()
        yield {
            "parentSessionKey": above,
            **{name: value for name, value in node.items() if name != "children"},
        }
        waiting += [(child, node.get("sessionKey")) for child in reversed(_children(node))]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Mapping of instants to the cells of a bar."""

    first: datetime
    last: datetime
    cells: int

    def cell(self, instant: datetime) -> int:
        """Return the cell of an instant, limited to the bar."""
        span = (self.last - self.first).total_seconds()
        part = (instant - self.first).total_seconds() / span if span > 0 else 0.0
        return min(self.cells - 1, max(0, int(part * self.cells)))


@dataclass(frozen=True, slots=True)
class _Row:
    """A line before it is fitted to the width: the texts, and the runs of its bars."""

    name: str
    status: str
    took: str
    runs: Sequence[Mapping[str, Any]]

    @property
    def style(self) -> str:
        """Return the color of the status; a refusal's status also has its rule."""
        return STATUS_STYLES.get(self.status.partition(":")[0], "")


def tree_lines(
    tree: Mapping[str, Any], cells_max: int, signs: TreeSigns, now: datetime | None = None
) -> "Iterator[Text]":
    """Yield the lines of the drawing, and below it the time scale.

    Bars of active runs end at the moment of the tree or, if it is later, at `now`.
    """
    from rich.cells import cell_len
    from rich.text import Text

    root = tree.get("root") or {}
    now = max(filter(None, (parse_instant(tree.get("at")), now)), default=None)
    rows = list(_rows(root, signs, "", "", now))
    names = min(NAME_CELLS_MAX, max(cell_len(row.name) for row in rows), max(8, cells_max // 2))
    statuses = max((len(row.status) for row in rows), default=0)
    tooks = max((len(row.took) for row in rows), default=0)
    room = cells_max - names - statuses - tooks - 3 * len(GAP)
    scale = _scale(rows, now, room) if room >= BAR_CELLS_MIN else None
    for row in rows:
        line = Text(_fit(row.name, names, signs))
        line.append(GAP + row.status.ljust(statuses), style=row.style)
        line.append(GAP + row.took.rjust(tooks))
        if scale is not None:
            line.append(GAP + _bar(row, scale, signs, now), style=row.style)
        line.rstrip()
        yield line
    if scale is not None:
        begin, end = format_instant(scale.first.isoformat()), format_instant(scale.last.isoformat())
        yield Text(f"{begin} to {end} UTC: {signs.waits} waiting, {signs.works} running")


def _rows(
    node: Node, signs: TreeSigns, own: str, below: str, now: datetime | None
) -> Iterator[_Row]:
    runs = [run for run in node.get("runs") or () if isinstance(run, Mapping)]
    newest = runs[-1] if runs else {}
    status = str(newest.get("status") or ("open" if node.get("open") else "closed"))
    yield _Row(own + _name(node, newest), printable_line(status), _took(runs, now), runs)
    lines = _lines_below(node)
    is_cut = bool(node.get("childrenCut") or node.get("refusedCut"))
    for place, (below_it, is_refused) in enumerate(lines, 1):
        is_last = place == len(lines) and not is_cut
        lead = below + (signs.last if is_last else signs.branch)
        if is_refused:
            yield _refused_row(below_it, lead)
            continue
        further = below + (" " * len(signs.line) if is_last else signs.line)
        yield from _rows(below_it, signs, lead, further, now)
    if is_cut:
        key = printable_line(node.get("sessionKey") or "")
        yield _Row(f"{below}{signs.last}{signs.cut} more below {key}", "", "", ())


def _lines_below(node: Node) -> list[tuple[Node, bool]]:
    """Return the children and refused runs of a node by creation; True marks a refused run."""
    refused = [run for run in node.get("refused") or () if isinstance(run, Mapping)]
    lines = [*((child, False) for child in _children(node)), *((run, True) for run in refused)]
    return sorted(lines, key=lambda line: str(line[0].get("createdAt") or ""))


def _refused_row(run: Mapping[str, Any], lead: str) -> _Row:
    status = "refused" + (f": {run['rule']}" if run.get("rule") else "")
    return _Row(lead + _name(run, run), printable_line(status), "", (run,))


def _children(node: Node) -> list[Node]:
    return [child for child in node.get("children") or () if isinstance(child, Mapping)]


def _name(node: Node, newest: Mapping[str, Any]) -> str:
    run_id, label = newest.get("runId"), newest.get("label")
    agent = node.get("agentId")
    if run_id is None:
        return printable_line(node.get("sessionKey") or "a session")
    words = [str(label or agent or "?"), f"({agent})" if label and agent else "", str(run_id)[:8]]
    earlier = newest.get("respawnedFrom")
    words.append(f"from {str(earlier)[:8]}" if earlier else "")
    return printable_line(" ".join(word for word in words if word))


def _took(runs: Sequence[Mapping[str, Any]], now: datetime | None) -> str:
    """Return the total time that the runs have been active."""
    took = 0
    for run in runs:
        times = _times(run)
        started, ended = times.get("started"), _end_of(times) or now
        if started is not None and ended is not None:
            took += max(0, milliseconds_between(started, ended))
    return format_duration(took) if took else ""


def _times(run: Mapping[str, Any]) -> dict[str, datetime]:
    times = {}
    for stage in run.get("stages") or ():
        at = parse_instant(stage.get("at"))
        if at is not None:
            times[str(stage.get("stage"))] = at
    return times


def _end_of(times: Mapping[str, datetime]) -> datetime | None:
    return next((times[stage] for stage in _OVER if stage in times), None)


def _scale(rows: Sequence[_Row], now: datetime | None, cells: int) -> _Scale | None:
    times_by_run = [_times(run) for row in rows for run in row.runs]
    begun = [min(times.values()) for times in times_by_run if times]
    ended = [_end_of(times) or now or datetime.now(UTC) for times in times_by_run if times]
    return _Scale(min(begun), max(ended), cells) if begun else None


def _bar(row: _Row, scale: _Scale, signs: TreeSigns, now: datetime | None) -> str:
    cells = [" "] * scale.cells
    for run in row.runs:
        times = _times(run)
        if not times:
            continue
        end = _end_of(times) or now or scale.last
        started = times.get("started")
        for cell in range(scale.cell(min(times.values())), scale.cell(started or end) + 1):
            cells[cell] = signs.waits
        if started is not None:
            for cell in range(scale.cell(started), scale.cell(end) + 1):
                cells[cell] = signs.works
    return "".join(cells)


def _fit(text: str, cells: int, signs: TreeSigns) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= cells:
        return set_cell_size(text, cells)
    return set_cell_size(set_cell_size(text, cells - len(signs.cut)) + signs.cut, cells)
