"""Tables, times, plain text and YAML for a terminal."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line
from infrastructure.inbound.command_line.display.session_tree import ASCII, tree_lines
from infrastructure.inbound.command_line.display.summary import print_summary
from infrastructure.inbound.command_line.display.tables import TableColumn, table_lines, value_of
from infrastructure.inbound.command_line.display.times import (
    format_duration,
    format_instant,
    format_offset,
)
from infrastructure.inbound.command_line.display.yaml_text import yaml_lines

COLUMNS = (
    TableColumn("N", value_of("n"), right=True),
    TableColumn("STATUS", value_of("status"), coloured=True),
    TableColumn("TASK", value_of("task"), elastic=True),
)


def shown(*rows: tuple[int, str | None, str], cells_max: int | None = None) -> list[str]:
    items = [{"n": n, "status": status, "task": task} for n, status, task in rows]
    return [line.plain for line in table_lines(items, COLUMNS, cells_max)]


def test_column_is_as_wide_as_its_values() -> None:
    lines = shown((7, "done", "a"), (1234, None, "b"))
    assert lines == ["   N  STATUS  TASK", "   7  done    a", "1234          b"]


def test_elastic_column_alone_is_cut() -> None:
    words = "Count the words of data"
    assert shown((1, "failed", words), cells_max=25)[1] == "1  failed  Count the wor…"
    narrow = shown((1, "session-created", "x" * 50), cells_max=10)
    assert narrow[1] == "1  session-created  xxxxxxx…"
    assert shown((1, "done", "x" * 150))[1].endswith("x" * 150)


def test_summary_shows_ends_of_each_agent(capsys: pytest.CaptureFixture[str]) -> None:
    used = {"agentId": "writer", "inputTokens": 7, "outputTokens": 3, "estimatedCostUsd": 0.5}
    statuses = {"idle": {"refused": 2}, "writer": {"done": 1, "failed": 1}}
    print_summary({"ended": {"statusesByAgent": statuses, "usageByAgent": [used]}})
    _, heading, header, *rows = capsys.readouterr().out.splitlines()
    assert heading == "by agent:"
    assert header.split()[:3] == ["AGENT", "RUNS", "ENDED"]
    assert [row.split() for row in rows] == [
        ["writer", "2", "done=1", "failed=1", "7", "3", "$0.5"],
        ["idle", "2", "refused=2"],
    ]


def test_wide_letters_take_two_cells() -> None:
    lines = shown((1, "漢字", "a"), (2, "done", "b"))
    assert lines[1].index("a") == lines[2].index("b") - 2
    assert all(cell_len(line) <= 20 for line in shown((1, "", "漢" * 9), cells_max=20))


def test_status_alone_is_coloured_and_markup_is_text() -> None:
    item = {"n": 1, "status": "failed", "task": "failed [bold]x[/bold] :smile:"}
    _, line = table_lines([item], COLUMNS, None)
    assert [str(span.style) for span in line.spans] == ["red"]
    assert line.plain.endswith("failed [bold]x[/bold] :smile:")


@pytest.mark.parametrize("cells", [60, 80, 100])
def test_folding_column_is_never_cut(cells: int) -> None:
    columns = (
        TableColumn("KEY", value_of("key")),
        TableColumn("VALUE", value_of("value"), folds=True),
        TableColumn("FROM", value_of("from"), folds=True),
    )
    place = "agents.list[0].subagents.allowAgents." * 2
    item = {"key": "mayName", "value": "a b c" * 30, "from": place}
    lines = [line.plain for line in table_lines([item], columns, cells)]
    assert all(cell_len(line) <= cells for line in lines)
    assert "…" not in "".join(lines)
    start = lines[0].index("FROM")
    assert "".join(line[start:] for line in lines[1:]) == place


def test_narrow_table_shortens_and_drops_before_it_cuts() -> None:
    columns = (
        TableColumn("AT", value_of("at"), narrow=lambda item: str(item["at"])[-5:]),
        TableColumn("WHO", value_of("who"), optional=True),
        TableColumn("TASK", value_of("task"), elastic=True, cells_min=20),
    )
    item = {"at": "2026-03-01 09:30", "who": "somebody", "task": "Count the words of data/harbour"}
    for cells, expected in (
        (70, "2026-03-01 09:30  somebody  Count the words of data/harbour"),
        (50, "2026-03-01 09:30  somebody  Count the words of da…"),
        (40, "09:30  somebody  Count the words of dat…"),
        (30, "09:30  Count the words of dat…"),
        (20, "09:30  Count the wo…"),
    ):
        _, line = table_lines([item], columns, cells)
        assert line.plain == expected


def test_instant_is_utc_to_the_millisecond() -> None:
    assert format_instant("2026-03-01T10:30:00.125678+01:00") == "2026-03-01 09:30:00.125"
    assert format_instant("2026-03-01T09:30:00Z") == "2026-03-01 09:30:00.000"
    assert (format_instant(None), format_instant("soon")) == ("", "soon")
    assert format_offset("2026-03-01T09:30:00Z", "2026-03-01T09:30:01.5Z") == "+1.500s"
    assert format_offset(None, "2026-03-01T09:30:00Z") == ""


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (999, "999ms"),
        (1200, "1.2s"),
        (59_940, "59.9s"),
        (59_960, "1m00s"),
        (312_000, "5m12s"),
        (7_500_000, "2h05m"),
        (None, ""),
        (True, ""),
    ],
)
def test_duration_is_short(milliseconds: object, shown: str) -> None:
    assert format_duration(milliseconds) == shown


def test_tree_counts_milliseconds_as_the_server_does() -> None:
    begun, ended = "2026-03-01T09:30:00.000100Z", "2026-03-01T09:30:00.024700Z"
    stages = [{"stage": "started", "at": begun}, {"stage": "ended", "at": ended}]
    run = {"runId": "r", "status": "done", "stages": stages}
    (line, *_) = tree_lines({"root": {"runs": [run]}}, 60, ASCII)
    assert "  24ms" in line.plain
    assert format_offset(begun, ended) == "+0.024s"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
        ("\x9b", "\\x9b"),  # begins a sequence in eight-bit terminals
        ("a\rb", "a\\x0db"),  # would write over the line
        ("\u202e", "\\u202e"),  # turns the reading order round
        ("\u200b", "\\u200b"),
        ("\u2028", "\\u2028"),
        ("\udce9", "\\udce9"),  # half a character
        ("\U000e0041", "\\U000e0041"),
        ("a\r\nb", "a\nb"),
        *[("naïve 漢字\n\t👩\u200d🚀 ok",) * 2],
    ],
)
def test_block_escapes_what_is_no_text(text: str, shown: str) -> None:
    assert printable_block(text) == shown


def test_line_is_one_and_cut() -> None:
    assert printable_line("first\n  second\tthird\u2028fourth") == "first second third fourth"
    assert printable_line("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert printable_line("x" * 10, 10) == "x" * 10
    assert printable_line(7) == "7"


@given(st.text(alphabet=st.characters()))
def test_no_text_steers_a_terminal(text: str) -> None:
    for shown in (printable_block(text), printable_line(text)):
        assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
        assert not any(0x7F <= ord(sign) < 0xA0 for sign in shown)
        shown.encode("utf-8")
    assert "\n" not in printable_line(text)
    assert len(printable_line(text)) <= 200


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.sampled_from(["yes", "No", "null", "~", "1", "1e3", "0x1f", "- a", "a: b", "a #b", " a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


def written(value: object) -> str:
    return "\n".join(yaml_lines(value)) + "\n"


@given(VALUES)
def test_document_is_read_as_the_same_value(value: Any) -> None:
    text = written(value)
    assert yaml.safe_load(text) == value
    assert text.isascii()


def test_document_is_in_blocks() -> None:
    value = {"items": [{"run": "r1", "labels": ["a", "b"], "usage": {}}], "more": False}
    assert (
        written(value)
        == """---
items:
  - run: r1
    labels:
      - a
      - b
    usage: {}
more: false
"""
    )


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "\U0001f600", "two\nlines"])
def test_terminal_obeys_nothing_in_a_document(text: str) -> None:
    shown = written({"task": text})
    assert text not in shown
    assert yaml.safe_load(shown) == {"task": text}
