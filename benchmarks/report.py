"""Figures of a benchmark: percentiles, tables for people, JSON for programs. Pure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.load import Measured


@dataclass(frozen=True, slots=True)
class Timing:
    """Rate per second and latencies in milliseconds. `client_cpu` is the share of the time in which
    the measuring process used a processor.
    """

    done: int
    seconds: float
    per_second: float
    p50_ms: float
    p99_ms: float
    client_cpu: float


@dataclass(frozen=True, slots=True)
class Cell:
    """A measurement and its floor, if any: the same rows, callers and commits. `processes` is the
    number of servers or writers.
    """

    name: str
    commits: str
    processes: int
    callers: int
    timing: Timing
    floor: Timing | None = None

    @property
    def ratio(self) -> float | None:
        """Return the rate divided by that of the floor, or None without a floor."""
        if self.floor is None or self.floor.per_second == 0:
            return None
        return round(self.timing.per_second / self.floor.per_second, 2)


@dataclass(frozen=True, slots=True)
class Figure:
    """A single number. Without a value, `note` says why it was not measured."""

    name: str
    unit: str
    value: float | None
    note: str = ""


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed."""
    if not sorted_values:
        return math.nan
    place = math.ceil(share * len(sorted_values)) - 1
    return sorted_values[max(0, min(place, len(sorted_values) - 1))]


def timing(measured: Measured) -> Timing:
    """Return the figures of a measurement."""
    ordered = sorted(measured.latencies)
    return Timing(
        done=len(ordered),
        seconds=round(measured.seconds, 3),
        per_second=round(len(ordered) / measured.seconds, 1) if measured.seconds > 0 else 0.0,
        p50_ms=round(percentile(ordered, 0.50) * 1000, 2),
        p99_ms=round(percentile(ordered, 0.99) * 1000, 2),
        client_cpu=round(measured.client_cpu, 2),
    )


HEAD = (
    "what",
    "commits",
    "processes",
    "callers",
    "per second",
    "p50 ms",
    "p99 ms",
    "client cpu",
    "floor/s",
    "p50 ms",
    "p99 ms",
    "client cpu",
    "of the floor",
)


def table(cells: Sequence[Cell]) -> str:
    """Return the cells as a table, each beside its floor."""
    return aligned([HEAD, *(_row(cell) for cell in cells)])


def _row(cell: Cell) -> tuple[str, ...]:
    ratio = cell.ratio
    return (
        cell.name,
        cell.commits,
        str(cell.processes),
        str(cell.callers),
        *_timed(cell.timing),
        *(_timed(cell.floor) if cell.floor else ("-",) * 4),
        f"{ratio:.2f}" if ratio is not None else "-",
    )


def _timed(timing: Timing) -> tuple[str, ...]:
    return (
        f"{timing.per_second:.1f}",
        f"{timing.p50_ms:.2f}",
        f"{timing.p99_ms:.2f}",
        f"{timing.client_cpu:.0%}",
    )


def figures_table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table."""
    rows = [("what", "value", "unit")]
    rows += [
        (
            figure.name,
            "not measured" if figure.value is None else f"{figure.value:.1f}",
            _unit(figure),
        )
        for figure in figures
    ]
    return aligned(rows, right=(1,))


def _unit(figure: Figure) -> str:
    if figure.value is None:
        return figure.note
    return f"{figure.unit} ({figure.note})" if figure.note else figure.unit


def aligned(rows: Sequence[tuple[str, ...]], right: Sequence[int] | None = None) -> str:
    """Return the rows as aligned columns. By default the first two columns are text and the others
    numbers.
    """
    numbers = range(2, len(rows[0])) if right is None else right
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            text.rjust(width) if column in numbers else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def document(
    cells: Sequence[Cell],
    figures: Sequence[Figure],
    machine: dict[str, Any],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return everything as JSON values."""
    return {
        "machine": machine,
        "notes": list(notes),
        "cells": [{**asdict(cell), "ratio": cell.ratio} for cell in cells],
        "figures": [asdict(figure) for figure in figures],
    }
