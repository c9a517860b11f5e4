"""YAML that says what JSON says."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.inbound.command_line.display.yaml_text import yaml_lines

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
