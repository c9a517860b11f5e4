"""How one line of a runtime's output is read."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.delivery.transcript import (
    LINE_BYTES_MAX,
    MessageEntry,
    ParsedEntry,
    ProgressEntry,
    ResultEntry,
    TextEntry,
    ToolEntry,
    UsageEntry,
    read_line,
)


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ({"type": "message", "role": "user", "text": "hi", "id": 1}, MessageEntry("user", "hi")),
        ({"type": "tool", "name": "read", "input": {"path": "a"}, "output": "text"},
         ToolEntry("read", '{"path":"a"}', "text")),
        ({"type": "tool", "name": "read"}, ToolEntry("read", None, None)),
        ({"type": "usage", "inputTokens": 12, "outputTokens": 3.0, "model": " p/m "},
         UsageEntry(12, 3, "p/m")),
        ({"type": "usage", "outputTokens": 3}, UsageEntry(0, 3, None)),
        ({"type": "usage", "inputTokens": None, "outputTokens": 3}, UsageEntry(0, 3, None)),
        ({"type": "progress", "text": "half"}, ProgressEntry("half")),
        ({"type": "result", "text": ""}, ResultEntry("")),
    ],
)  # fmt: skip
def test_the_known_shapes_are_read(line: object, entry: ParsedEntry) -> None:
    assert read_line(json.dumps(line) + "\r\n") == entry


@pytest.mark.parametrize(
    "line",
    [
        "plain text",
        "[1]",
        "42",
        "{",
        "[" * 5000,
        '{"type": "message", "role": "assistant"}',
        '{"type": "message", "role": "king", "text": "x"}',
        '{"type": "message", "role": ["a"], "text": "x"}',
        '{"type": "tool", "name": "  "}',
        '{"type": "tool"}',
        '{"type": "usage"}',
        '{"type": "usage", "inputTokens": -1}',
        '{"type": "usage", "inputTokens": true}',
        '{"type": "usage", "inputTokens": "5"}',
        '{"type": "usage", "inputTokens": 1.5}',
        '{"type": "usage", "inputTokens": 1e300}',
        '{"type": "usage", "inputTokens": NaN}',
        '{"type": "result", "text": 5}',
        '{"type": "other", "text": "x"}',
        '{"type": ["result"], "text": "x"}',
        '{"text": "x"}',
    ],
)
def test_a_line_of_no_known_shape_is_kept_as_text(line: str) -> None:
    assert read_line(line) == TextEntry(line)


@pytest.mark.parametrize("line", ["", "\n", "  \t\r\n"])
def test_a_blank_line_is_nothing(line: str) -> None:
    assert read_line(line) is None


def test_what_no_store_takes_is_replaced() -> None:
    assert read_line('{"type": "result", "text": "a\\u0000\\ud800"}') == ResultEntry(
        "a\ufffd\ufffd"
    )
    assert read_line("a\x00") == TextEntry("a\ufffd")


def test_a_line_of_exactly_the_limit_is_read() -> None:
    start, end = '{"type":"result","text":"', '"}'
    text = "x" * (1_048_576 - len(start) - len(end))
    assert read_line(start + text + end) == ResultEntry(text)


def test_a_line_over_the_limit_is_cut() -> None:
    line = json.dumps({"type": "result", "text": "ü" * LINE_BYTES_MAX}, ensure_ascii=False)
    entry = read_line(line)
    assert isinstance(entry, TextEntry)
    assert LINE_BYTES_MAX - 2 <= len(entry.text.encode()) <= LINE_BYTES_MAX


@settings(deadline=None)
@given(
    st.text(max_size=60)
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "tool", "usage", "result", "progress"])},
        optional={
            name: st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=2)
            for name in ("role", "text", "name", "input", "output", "inputTokens", "model")
        },
    ).map(json.dumps)
)
def test_no_line_is_too_odd_to_be_read(line: str) -> None:
    entry = read_line(line)
    assert (entry is None) == (not line.strip())
