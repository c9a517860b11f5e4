"""JSON from outside is read strictly and never surprises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.values.json_text import NotJson, compact_json, read_json, text_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(json_values)
def test_what_was_written_is_read_again(value: object) -> None:
    assert read_json(compact_json(value)) == value


@pytest.mark.parametrize(
    "text", ["", "plain", "NaN", '{"a": Infinity}', "{'a': 1}", "[1,]", "[" * 100_000, '{"a":1} x']
)
def test_anything_else_is_not_json(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text)


def test_nesting_is_limited_by_a_number_and_not_by_the_stack() -> None:
    read_json("[" * 200 + "]" * 200)
    with pytest.raises(NotJson):
        read_json("[" * 202 + "]" * 202)


def test_oddities_of_json_are_settled() -> None:
    assert read_json('\ufeff{"a": 1, "a": 2}\n') == {"a": 2}
    assert read_json(f"[{'9' * 5000}, 1e999, -1e999]") == [None, None, None]
    assert read_json("123456789012345678901234567890") == 123456789012345678901234567890


def test_a_value_is_shown_as_text() -> None:
    assert text_of("x") == "x"
    assert text_of({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'
