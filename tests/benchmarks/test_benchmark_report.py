"""The figures of a benchmark."""

import json

from benchmarks.report import Cell, cell, document, percentile, table


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    assert percentile(values, 0.5) == 2.0
    assert percentile(values, 0.99) == 4.0
    assert percentile([7.0], 0.5) == 7.0


def test_a_cell_counts_what_was_done_in_the_time() -> None:
    made = cell("spawns", 8, [0.001, 0.002, 0.004], 2.0)
    assert made == Cell("spawns", 8, 3, 2.0, 1.5, 2.0, 4.0)


def test_the_table_gives_each_row_as_a_ratio_to_the_floor_with_as_many_callers() -> None:
    cells = [
        Cell("floor", 1, 100, 1.0, 100.0, 1.0, 2.0),
        Cell("spawns", 1, 50, 1.0, 50.0, 2.0, 4.0),
        Cell("spawns", 8, 50, 1.0, 50.0, 2.0, 4.0),
    ]
    lines = table(cells, "floor").splitlines()
    assert lines[3].split()[-1] == "0.50"
    assert lines[4].split()[-1] == "-"
    assert len({len(line) for line in lines[1:2]}) == 1


def test_the_document_is_json() -> None:
    made = document([cell("x", 1, [0.1], 1.0)], {"cores": 2}, ["note"])
    assert json.loads(json.dumps(made))["cells"][0]["p50_ms"] == 100.0
