"""The comparison lets nothing pass that a case does not say."""

from typing import Any

import pytest

from tests.support.cases.cases import UNREAD, Case
from tests.support.cases.comparison import CHILD, Among, Differs, Whole, falsified, hold


def case(expect: dict[str, Any], area: str = "area", name: str = "name") -> Case:
    return Case(area=area, name=name, source_file="", given={}, expect=expect)


@pytest.mark.parametrize(
    ("answer", "expect"),
    [
        ({"a": 1, "more": 2}, {"a": 1}),
        ({"a": None}, {"a": None}),
        ({"a": ("x", None)}, {"a": ["x", None]}),
        ({"a": {"b": {"c": 1}, "more": 2}}, {"a": {"b": {"c": 1}}}),
        ({"a": Whole({"b": 1})}, {"a": {"b": 1}}),
        ({"a": Among("xyz")}, {"a": ["z", "x"]}),
        ({"a": "text"}, {"a_prefix": "te", "a_matches": "^t.xt$", "a_contains": "ex"}),
        ({"a": "text"}, {"a_contains": ["te", "xt"], "not_contains": "z"}),
        ({"a": {"b": 1}, "c": 2}, {"c": 2, "absent": ["d"]}),
        ({CHILD: "key", "a": {"b": "key"}}, {"a": {"b": "<child>"}}),
        ({"a.b": 1}, {"a.b": 1}),
    ],
)
def test_what_a_case_says_holds(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    hold(answer, case(expect))
    wrong = list(falsified(case(expect), answer))
    assert wrong
    for _, other in wrong:
        with pytest.raises(Differs):
            hold(answer, other)


@pytest.mark.parametrize(
    ("answer", "expect"),
    [
        ({}, {"a": None}),
        ({"b": 1}, {"a": 1}),
        ({"a": True}, {"a": 1}),
        ({"a": 0}, {"a": False}),
        ({"a": None}, {"a": False}),
        ({"a": "1"}, {"a": 1}),
        ({"a": "xyz"}, {"a": ["x", "y", "z"]}),
        ({"a": ["x", "y"]}, {"a": ["x"]}),
        ({"a": ["y", "x"]}, {"a": ["x", "y"]}),
        ({"a": {"b": 1, "c": 2}}, {"a": [1, 2]}),
        ({"a": Among("xy")}, {"a": ["x", "z"]}),
        ({"a": Among("xy")}, {"a": []}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": {}}),
        ({"a": Whole({"b": 1, "c": 2})}, {"a": {"b": 1}}),
        ({"a": 1}, {"a": {"b": 1}}),
        ({"a": "text"}, {"a_contains": []}),
        ({"a": "text"}, {"a_contains": ["te", "z"]}),
        ({"a": None}, {"a_contains": "None"}),
        ({"a": "text"}, {"a_prefix": "ext"}),
        ({"a": "text"}, {"a_matches": "^ext"}),
        ({"a": "text"}, {"a_contains": "te", "not_contains": "xt"}),
        ({"a": {"d": 1}, "c": 2}, {"c": 2, "absent": ["d"]}),
        ({"d": 1, "c": 2}, {"c": 2, "absent": ["d"]}),
        ({CHILD: "key", "a": "other"}, {"a": "<child>"}),
        ({"a": "key"}, {"a": "<child>"}),
    ],
)
def test_anything_else_differs(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    with pytest.raises(Differs):
        hold(answer, case(expect))


def test_only_what_the_list_names_is_left_out() -> None:
    leaf = UNREAD[0]
    *above, name = leaf.leaf.split(".")
    answer: dict[str, Any] = {"a": 1, **({above[0]: {}} if above else {})}
    expect: dict[str, Any] = {"a": 1, name: 2}
    if above:
        expect = {"a": 1, above[0]: {name: 2}}
    hold(answer, case(expect, leaf.area, leaf.name))
    with pytest.raises(Differs):
        hold(answer, case(expect, leaf.area, "another"))
