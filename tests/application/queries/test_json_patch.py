"""JSON patches: their changes, stability and errors."""

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


@given(left=VALUES | ITEMS, right=VALUES | ITEMS, most=st.integers(1, 4) | st.just(OPERATIONS_MAX))
def test_difference_applied_to_the_left_gives_the_right(left: Any, right: Any, most: int) -> None:
    before = copy.deepcopy(left)
    patch = difference(left, right, operations_max=most)
    assert len(patch) <= most
    assert {item["op"] for item in patch} <= {"add", "remove", "replace"}
    assert (patch == []) == is_same(left, right)
    assert is_same(apply_patch(patch, left), right)
    assert is_same(left, before), "what is patched stays as it is"


def replaced(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def added(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


LONG = [{"runId": str(number)} for number in range(400)]
DIFFERENCES: dict[str, tuple[Any, Any, list[dict[str, Any]]]] = {
    "members in their order": (
        {"gone": 1, "b": {"x": 1}, "same": [1]},
        {"same": [1], "new": None, "b": {"x": 2}},
        [{"op": "remove", "path": "/gone"}, added("/new", None), replaced("/b/x", 2)],
    ),
    "names are escaped as pointers": (
        {},
        {"a/b": 1, "m~n": 2, "~1": 3},
        [added("/a~1b", 1), added("/m~0n", 2), added("/~01", 3)],
    ),
    "items by their identity": (
        [{"runId": "1", "state": "waiting"}, {"runId": "2", "state": "waiting"}],
        [{"runId": "2", "state": "met"}, {"runId": "3", "state": "waiting"}],
        [
            {"op": "remove", "path": "/0"},
            replaced("/0/state", "met"),
            added("/1", {"runId": "3", "state": "waiting"}),
        ],
    ),
    "of a long list what changed": (
        LONG,
        [*LONG[1:200], {"runId": "new"}, *LONG[200:], {"runId": "last"}],
        [
            {"op": "remove", "path": "/0"},
            added("/199", {"runId": "new"}),
            added("/400", {"runId": "last"}),
        ],
    ),
    "the middle of a very long list": (
        list(range(5000)),
        [*range(2500), -1, -2, *range(2501, 5000)],
        [replaced("/2500", -1), added("/2501", -2)],
    ),
    "one operation in place of too many": (
        list(range(2000)),
        list(range(5000, 7000)),
        [replaced("", list(range(5000, 7000)))],
    ),
    "one and true": (1, True, [replaced("", True)]),
    "one and 1.0": ([1], [1.0], [replaced("/0", 1.0)]),
}


@pytest.mark.parametrize(("left", "right", "patch"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_difference_is_written_so(left: Any, right: Any, patch: list[dict[str, Any]]) -> None:
    assert difference(left, right) == patch


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
def test_patch_does_what_the_standard_says(before: Any, patch: Any, after: Any) -> None:
    assert is_same(apply_patch(patch, before), after)


REFUSED: list[tuple[Any, Any, str, str]] = [
    ({}, {"op": "add"}, "", "a patch is a list"),
    ({}, ["add"], "/0", "an operation is an object"),
    ({}, [{"op": "merge", "path": "/a"}], "/0", "one of add"),
    ({}, [{"op": ["add"], "path": "/a"}], "/0", "one of add"),
    ({}, [{"op": "add", "path": "/a"}], "/0", "add requires value"),
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
    ({"a": 1}, [{"op": "test", "path": "/a", "value": True}], "/0", "is different"),
    ({"a": 1}, [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}], "/1/path", "/a"),
]


@pytest.mark.parametrize(("value", "patch", "pointer", "detail"), REFUSED)
def test_patch_that_does_not_fit_is_refused(
    value: Any, patch: Any, pointer: str, detail: str
) -> None:
    before = copy.deepcopy(value)
    with pytest.raises(PatchError) as refused:
        apply_patch(patch, value)
    assert refused.value.pointer == pointer
    assert detail in refused.value.detail
    assert is_same(value, before), "a patch is applied whole or not at all"


def test_patch_has_limited_operations() -> None:
    operation = {"op": "add", "path": "/a", "value": 1}
    with pytest.raises(PatchError, match="at most 1000"):
        apply_patch([operation] * (OPERATIONS_MAX + 1), {})


@pytest.mark.parametrize(
    "value", [["x" * 1_000_000], [{"y" * 1_000_000: 0}], {"z": "x" * 1_000_000}], ids=type
)
def test_copies_of_long_text_are_limited(value: Any) -> None:
    into = "/a/-" if isinstance(value, list) else "/a/{}"
    copies = [{"op": "copy", "from": "/a", "path": into.format(number)} for number in range(12)]
    with pytest.raises(PatchError, match="writes texts of at most 16777216 characters"):
        apply_patch(copies, {"a": value})


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    bomb = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    with pytest.raises(PatchError, match=r"writes at most|nested at most"):
        apply_patch(bomb, {"a": [1, 2, 3]})
    deep = [{"op": "copy", "from": "/a", "path": f"/a{'/b' * depth}"} for depth in range(1, 300)]
    with pytest.raises(PatchError, match=r"writes at most|nested at most|nothing at"):
        apply_patch(deep, {"a": {}})
