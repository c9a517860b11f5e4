"""Conditions over numbers: syntax, meaning and errors."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.queries.search.condition import (
    COMPARISONS_MAX,
    DEPTH_MAX,
    LENGTH_MAX,
    ConditionError,
    parse_condition,
)

NAMES = ("running", "queued", "refused", "config", "position")
GROWING = frozenset({"refused", "config", "position"})
SIGNS = (">", ">=", "<", "<=", "=", "==", "!=")

sides = st.sampled_from(NAMES) | st.integers(0, 5).map(str)
comparisons = st.tuples(sides, st.sampled_from(SIGNS), sides).map(" ".join)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        inner.map("not ({})".format)
        | inner.map("( {} )".format)
        | st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    ),
    max_leaves=8,
)
numbers = st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES})


def means(text: str, values: dict[str, int]) -> bool:
    output = re.sub(r"(?<![<>=!])=(?!=)", "==", text)
    return bool(eval(output, {"__builtins__": {}}, values))


@given(conditions, numbers)
def test_condition_means_what_it_says(text: str, values: dict[str, int]) -> None:
    condition = parse_condition(text, NAMES)
    assert condition.holds(values) is means(text, values)
    assert condition.names == {name for name in NAMES if name in text}


@given(conditions, numbers, numbers)
def test_growing_condition_holds_on(
    text: str, values: dict[str, int], more: dict[str, int]
) -> None:
    condition = parse_condition(text, NAMES)
    later = {
        name: value + more[name] if name in GROWING else more[name]
        for name, value in values.items()
    }
    if condition.grows(GROWING) and condition.holds(values):
        assert condition.holds(later)


@given(conditions, numbers, st.integers(0, 12))
def test_condition_turns_at_its_turning_positions(
    text: str, values: dict[str, int], length: int
) -> None:
    condition = parse_condition(text, NAMES)
    turning = condition.turning_positions(values)
    for position in range(values["position"] + 1, values["position"] + length):
        before = condition.holds({**values, "position": position - 1})
        if condition.holds({**values, "position": position}) != before:
            assert position in turning


@pytest.mark.parametrize(
    ("text", "column", "word"),
    [
        ("", 1, "the end"),
        ("running >", 10, "the end"),
        ("running > 6 6", 13, '"6"'),
        ("runing > 6", 1, 'did you mean "running"'),
        ("(running > 6", 13, "parenthesis"),
        ("running > 6)", 12, '")"'),
        ("running > -1", 11, "unexpected character '-'"),
        ("running > \x1b[2J", 11, "unexpected character '\\x1b'"),
        ("running > ٣", 11, "unexpected character"),
        ("running > 1234567890123456789", 11, "18 digits"),
        ("__class__ > 1", 1, "there is no number"),
    ],
)
def test_error_has_column_and_reason(text: str, column: int, word: str) -> None:
    with pytest.raises(ConditionError) as wrong:
        parse_condition(text, NAMES)
    assert wrong.value.column == column
    assert word in str(wrong.value)


@pytest.mark.parametrize(
    "text",
    [
        "running>1" + " " * LENGTH_MAX,
        "(" * (DEPTH_MAX + 1) + "running > 1" + ")" * (DEPTH_MAX + 1),
        "not " * (DEPTH_MAX + 1) + "running > 1",
        " or ".join(["queued>1"] * (COMPARISONS_MAX + 1)),
    ],
)
def test_too_large_condition_is_refused(text: str) -> None:
    with pytest.raises(ConditionError):
        parse_condition(text, NAMES)


@given(st.text(max_size=60))
def test_any_text_parses_or_has_a_column(text: str) -> None:
    column = 1
    try:
        parse_condition(text, NAMES)
    except ConditionError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1
