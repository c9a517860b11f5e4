"""Patches of JSON: what they change, that the same values give the same patch, what is refused."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.queries.changes.json_patch import (
    OPERATIONS_MAX,
    PatchError,
    apply_patch,
    difference,
    is_same,
)

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("ab")
NAMES = st.sampled_from(["a", "b", "a/b", "~", "~1", "", "id", "runId", "-", "0"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
ITEMS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 6), "value": st.integers(0, 2)}),
    unique_by=lambda item: item["id"],
    max_size=6,
)


@given(left=VALUES | ITEMS, right=VALUES | ITEMS)
def test_the_difference_applied_to_the_left_gives_the_right(left: Any, right: Any) -> None:
    before = copy.deepcopy(left)
    assert is_same(apply_patch(difference(left, right), left), right)
    assert is_same(left, before), "what is patched stays as it is"


@given(left=VALUES, right=VALUES)
def test_there_is_a_difference_when_and_only_when_two_values_differ(left: Any, right: Any) -> None:
    assert (difference(left, right) == []) == is_same(left, right)
    assert difference(left, copy.deepcopy(left)) == []


@given(left=VALUES | ITEMS, right=VALUES | ITEMS, most=st.integers(1, 4))
def test_a_difference_has_no_more_operations_than_it_may(left: Any, right: Any, most: int) -> None:
    patch = difference(left, right, operations_max=most)
    assert len(patch) <= most
    assert is_same(apply_patch(patch, left), right)


@given(left=VALUES | ITEMS, right=VALUES | ITEMS)
def test_a_difference_only_adds_removes_and_replaces(left: Any, right: Any) -> None:
    assert {one["op"] for one in difference(left, right)} <= {"add", "remove", "replace"}


def test_members_are_compared_in_their_order() -> None:
    left = {"gone": 1, "b": {"x": 1}, "same": [1]}
    right = {"same": [1], "new": None, "b": {"x": 2}}
    assert difference(left, right) == [
        {"op": "remove", "path": "/gone"},
        {"op": "add", "path": "/new", "value": None},
        {"op": "replace", "path": "/b/x", "value": 2},
    ]


def test_names_are_escaped_as_pointers_have_them() -> None:
    assert difference({}, {"a/b": 1, "m~n": 2, "~1": 3}) == [
        {"op": "add", "path": "/a~1b", "value": 1},
        {"op": "add", "path": "/m~0n", "value": 2},
        {"op": "add", "path": "/~01", "value": 3},
    ]


def test_an_item_is_compared_with_the_one_of_the_same_identity() -> None:
    left = [{"runId": "1", "state": "waiting"}, {"runId": "2", "state": "waiting"}]
    right = [{"runId": "2", "state": "met"}, {"runId": "3", "state": "waiting"}]
    assert difference(left, right) == [
        {"op": "remove", "path": "/0"},
        {"op": "replace", "path": "/0/state", "value": "met"},
        {"op": "add", "path": "/1", "value": {"runId": "3", "state": "waiting"}},
    ]


def test_what_is_appended_to_a_list_is_one_operation() -> None:
    assert difference(list(range(400)), list(range(401))) == [
        {"op": "add", "path": "/400", "value": 400}
    ]


def test_of_a_long_list_only_what_changed_is_written() -> None:
    left = [{"runId": str(number)} for number in range(400)]
    right = [*left[1:200], {"runId": "new"}, *left[200:]]
    assert difference(left, right) == [
        {"op": "remove", "path": "/0"},
        {"op": "add", "path": "/199", "value": {"runId": "new"}},
    ]


def test_long_lists_that_share_nothing_are_one_operation_when_they_would_take_too_many() -> None:
    left, right = list(range(2000)), list(range(5000, 7000))
    assert difference(left, right) == [{"op": "replace", "path": "", "value": right}]


def test_one_and_true_and_one_point_nought_are_three_values() -> None:
    assert difference(1, True) == [{"op": "replace", "path": "", "value": True}]
    assert difference([1], [1.0]) == [{"op": "replace", "path": "/0", "value": 1.0}]


# RFC 6902, appendix A, and RFC 6901, 5.
APPLIED: list[tuple[Any, Any, Any]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": 1}], {"foo": "bar", "baz": 1}),
    ({"foo": [1, 3]}, [{"op": "add", "path": "/foo/1", "value": 2}], {"foo": [1, 2, 3]}),
    ({"foo": [1, 2]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1]}),
    ({"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
    (
        {"foo": {"bar": 1, "waldo": "fred"}, "qux": {"corge": 1}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": 1}, "qux": {"corge": 1, "thud": "fred"}},
    ),
    ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
    ({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": [2]}], {"a": [1, [2]]}),
    ({"~1": 10, "/": 9}, [{"op": "test", "path": "/~01", "value": 10}], {"~1": 10, "/": 9}),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
    ({"a": 1}, [{"op": "add", "path": "", "value": [1]}], [1]),
    ({"": {"": 1}}, [{"op": "remove", "path": "//"}], {"": {}}),
]


@pytest.mark.parametrize(("before", "patch", "after"), APPLIED)
def test_a_patch_does_what_the_standard_says(before: Any, patch: Any, after: Any) -> None:
    assert is_same(apply_patch(patch, before), after)


REFUSED: list[tuple[Any, Any, str, str]] = [
    ({}, {"op": "add"}, "", "a patch is a list"),
    ({}, ["add"], "/0", "an operation is an object"),
    ({}, [{"op": "merge", "path": "/a"}], "/0", "one of add"),
    ({}, [{"op": ["add"], "path": "/a"}], "/0", "one of add"),
    ({}, [{"op": "add", "path": "/a"}], "/0", "add needs value"),
    ({}, [{"op": "remove", "path": "/a", "value": 1}], "/0/value", "no such member"),
    ({}, [{"op": "add", "path": "a", "value": 1}], "/0/path", "JSON pointer"),
    ({}, [{"op": "add", "path": "/~2", "value": 1}], "/0/path", "JSON pointer"),
    ({}, [{"op": "add", "path": 1, "value": 1}], "/0/path", "JSON pointer"),
    ({}, [{"op": "remove", "path": "/a"}], "/0/path", "nothing at /a"),
    ({}, [{"op": "remove", "path": ""}], "/0/path", "cannot be removed"),
    ({}, [{"op": "replace", "path": "/a", "value": 1}], "/0/path", "nothing at /a"),
    ({}, [{"op": "add", "path": "/a/b", "value": 1}], "/0/path", "nothing at /a"),
    ({"a": 1}, [{"op": "add", "path": "/a/b", "value": 1}], "/0/path", "no members"),
    ({"a": [1]}, [{"op": "add", "path": "/a/2", "value": 1}], "/0", "nothing at /a/2"),
    ({"a": [1]}, [{"op": "add", "path": "/a/01", "value": 1}], "/0", "nothing at /a/01"),
    ({"a": [1]}, [{"op": "add", "path": "/a/²", "value": 1}], "/0", "nothing at /a/²"),
    ({"a": [1]}, [{"op": "replace", "path": "/a/-", "value": 1}], "/0/path", "nothing at /a/-"),
    ({"a": {}}, [{"op": "move", "from": "/a", "path": "/a/b"}], "/0", "into itself"),
    ({"a": 1}, [{"op": "test", "path": "/a", "value": True}], "/0", "another one"),
    ({"a": 1}, [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}], "/1/path", "/a"),
]


@pytest.mark.parametrize(("value", "patch", "pointer", "detail"), REFUSED)
def test_a_patch_that_does_not_fit_is_refused(
    value: Any, patch: Any, pointer: str, detail: str
) -> None:
    before = copy.deepcopy(value)
    with pytest.raises(PatchError) as refused:
        apply_patch(patch, value)
    assert refused.value.pointer == pointer
    assert detail in refused.value.detail
    assert is_same(value, before), "a patch is applied whole or not at all"


def test_a_patch_has_a_limited_number_of_operations() -> None:
    operation = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(PatchError, match="at most 1000"):
        apply_patch([operation] * (OPERATIONS_MAX + 1), {})


@pytest.mark.parametrize(
    "value", [["x" * 1_000_000], [{"y" * 1_000_000: 0}], {"z": "x" * 1_000_000}], ids=type
)
def test_copies_of_a_long_text_are_as_long_as_they_would_be_printed(value: Any) -> None:
    into = "/a/-" if isinstance(value, list) else "/a/{}"
    copies = [{"op": "copy", "from": "/a", "path": into.format(one)} for one in range(12)]
    with pytest.raises(PatchError, match="writes texts of at most 16777216 characters"):
        apply_patch(copies, {"a": value})


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    bomb = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    with pytest.raises(PatchError, match=r"writes at most|nested at most"):
        apply_patch(bomb, {"a": [1, 2, 3]})
    deep = [{"op": "copy", "from": "/a", "path": f"/a{'/b' * depth}"} for depth in range(1, 300)]
    with pytest.raises(PatchError, match=r"writes at most|nested at most|nothing at"):
        apply_patch(deep, {"a": {}})
