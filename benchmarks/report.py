"""Figures of a benchmark: percentiles, a table for people, JSON for programs. Pure."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement: what was done, by how many callers, how often a second, how long each
    (milliseconds)."""

    name: str
    callers: int
    done: int
    seconds: float
    per_second: float
    p50_ms: float
    p99_ms: float


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    if not sorted_values:
        return math.nan
    place = math.ceil(share * len(sorted_values)) - 1
    return sorted_values[max(0, min(place, len(sorted_values) - 1))]


def cell(name: str, callers: int, latencies_seconds: Sequence[float], seconds: float) -> Cell:
    """The cell of a list of latencies."""
    ordered = sorted(latencies_seconds)
    return Cell(
        name=name,
        callers=callers,
        done=len(ordered),
        seconds=round(seconds, 3),
        per_second=round(len(ordered) / seconds, 1) if seconds > 0 else 0.0,
        p50_ms=round(percentile(ordered, 0.50) * 1000, 2),
        p99_ms=round(percentile(ordered, 0.99) * 1000, 2),
    )


def table(cells: Sequence[Cell], floor_name: str) -> str:
    """The cells as a table; the last column is the ratio to the floor with as many callers."""
    floors = {one.callers: one.per_second for one in cells if one.name == floor_name}
    head = ("what", "callers", "per second", "p50 ms", "p99 ms", "of the floor")
    rows = [head]
    for one in cells:
        floor = floors.get(one.callers)
        ratio = f"{one.per_second / floor:.2f}" if floor else "-"
        rows.append(
            (
                one.name,
                str(one.callers),
                f"{one.per_second:.1f}",
                f"{one.p50_ms:.2f}",
                f"{one.p99_ms:.2f}",
                ratio,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(
            _placed(text, width, column)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _placed(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def document(
    cells: Sequence[Cell], machine: dict[str, Any], notes: Sequence[str]
) -> dict[str, Any]:
    """Everything for a program."""
    return {"machine": machine, "notes": list(notes), "cells": [asdict(one) for one in cells]}
