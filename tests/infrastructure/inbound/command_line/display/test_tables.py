"""Tables for a terminal."""

import pytest
from rich.cells import cell_len

from infrastructure.inbound.command_line.display.tables import TableColumn, table_lines, value_of

COLUMNS = (
    TableColumn("N", value_of("n"), right=True),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("TASK", value_of("task"), elastic=True),
)


def shown(items: list[dict[str, object]], cells_max: int | None = None) -> list[str]:
    return [line.plain for line in table_lines(items, COLUMNS, cells_max)]


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    lines = shown(
        [{"n": 7, "status": "done", "task": "a"}, {"n": 1234, "status": None, "task": "b"}]
    )
    assert lines == ["   N  STATUS  TASK", "   7  done    a", "1234          b"]


def test_an_elastic_column_gives_way_to_the_width_of_the_terminal() -> None:
    lines = shown([{"n": 1, "status": "failed", "task": "Count the words of data"}], 25)
    assert lines[1] == "1  failed  Count the wor…"
    assert all(cell_len(line) <= 25 for line in lines)


def test_a_column_that_is_not_elastic_is_never_cut() -> None:
    lines = shown([{"n": 1, "status": "session-created", "task": "x" * 50}], 10)
    assert lines[1] == "1  session-created  xxxxxxx…"


def test_wide_letters_take_two_cells() -> None:
    lines = shown(
        [{"n": 1, "status": "漢字", "task": "a"}, {"n": 2, "status": "done", "task": "b"}]
    )
    assert lines[1].index("a") == lines[2].index("b") - 2
    assert all(
        cell_len(line) <= 20 for line in shown([{"n": 1, "status": "", "task": "漢" * 9}], 20)
    )


def test_lines_without_an_end_are_not_cut() -> None:
    assert shown([{"n": 1, "status": "done", "task": "x" * 150}])[1].endswith("x" * 150)


def test_a_status_is_coloured_and_foreign_words_are_not() -> None:
    lines = list(table_lines([{"n": 1, "status": "failed", "task": "failed"}], COLUMNS, None))
    assert [str(span.style) for span in lines[1].spans] == ["red"]


def test_markup_in_a_cell_is_text() -> None:
    assert shown([{"n": 1, "status": "", "task": "[bold]x[/bold] :smile:"}])[1].endswith(
        "[bold]x[/bold] :smile:"
    )


WIDE = "a b c" * 30


@pytest.mark.parametrize("cells", [60, 80, 100])
def test_folding_column_is_never_cut(cells: int) -> None:
    columns = (
        TableColumn("KEY", value_of("key")),
        TableColumn("VALUE", value_of("value"), folds=True),
        TableColumn("FROM", value_of("from"), folds=True),
    )
    item = {"key": "mayName", "value": WIDE, "from": "agents.list[0].subagents.allowAgents." * 2}
    lines = [line.plain for line in table_lines([item], columns, cells)]
    assert all(cell_len(line) <= cells for line in lines)
    assert "…" not in "".join(lines)
    start = lines[0].index("FROM")
    assert "".join(line[start:] for line in lines[1:]) == item["from"]


def test_narrow_table_shortens_and_drops_before_it_cuts() -> None:
    columns = (
        TableColumn("AT", value_of("at"), narrow=lambda item: str(item["at"])[-5:]),
        TableColumn("WHO", value_of("who"), optional=True),
        TableColumn("TASK", value_of("task"), elastic=True, cells_min=20),
    )
    item = {"at": "2026-03-01 09:30", "who": "somebody", "task": "Count the words of data/harbour"}

    def drawn(cells: int) -> str:
        return [line.plain for line in table_lines([item], columns, cells)][1]

    assert drawn(70) == "2026-03-01 09:30  somebody  Count the words of data/harbour"
    assert drawn(50) == "2026-03-01 09:30  somebody  Count the words of da…"
    assert drawn(40) == "09:30  somebody  Count the words of dat…"
    assert drawn(30) == "09:30  Count the words of dat…"
    assert drawn(20) == "09:30  Count the wo…"
