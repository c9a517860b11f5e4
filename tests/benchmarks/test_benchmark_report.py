"""Figures of a benchmark."""

import json

from benchmarks.load import Measured
from benchmarks.report import Cell, Figure, Timing, document, table, timing

SLOW = Timing(50, 1.0, 50.0, 2.0, 4.0, 0.25)
FAST = Timing(100, 1.0, 100.0, 1.0, 2.0, 0.5)
CELLS = [
    Cell("spawns", "plain", 1, 8, SLOW, FAST),
    Cell("lives", "plain", 1, 8, SLOW),
]


def test_a_timing_counts_what_was_done_in_the_time() -> None:
    made = timing(Measured([0.004, 0.001, 0.002], 2.0, 0.126))
    assert made == Timing(3, 2.0, 1.5, 2.0, 4.0, 0.13)


def test_the_table_gives_each_row_beside_its_floor() -> None:
    lines = table(CELLS).splitlines()
    measured = "50.0 2.00 4.00 25%  100.0 1.00 2.00 50%  0.50"
    assert lines[2].split() == ["spawns", "plain", "1", "8", *measured.split()]
    assert lines[3].split()[-5:] == ["-"] * 5
    assert len(lines[1]) == max(map(len, lines))


def test_the_document_is_json() -> None:
    made = document(CELLS, [Figure("x", "ms", 1.0)], {"cores": 2}, ["note"])
    read = json.loads(json.dumps(made))
    assert [cell["ratio"] for cell in read["cells"]] == [0.5, None]
    assert read["cells"][0]["floor"]["p50_ms"] == 1.0
    assert read["figures"][0]["name"] == "x"
