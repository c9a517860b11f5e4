"""How deep a session is, and what it may do there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.session.role import (
    ANCESTORS_MAX,
    Capabilities,
    FoundDepth,
    KnownDepth,
    capabilities_at,
    depth_of,
)
from domain.values.session_key import depth_of_shape

# How deep a session is: the record, else the chain of its parents, else the shape of its key.

ROOT = "agent:main:main"
CHILD = "agent:main:subagent:one"
GRANDCHILD = "agent:main:subagent:two"


def found(key: str, **known: KnownDepth) -> FoundDepth:
    names = {"root": ROOT, "child": CHILD, "grandchild": GRANDCHILD}
    return depth_of(key, {names[name]: one for name, one in known.items()}.get)


def test_what_is_on_record_counts_before_everything_else() -> None:
    assert found(GRANDCHILD, grandchild=KnownDepth(4, ROOT)) == FoundDepth(4, "record")


def test_digits_are_a_recorded_depth_too() -> None:
    assert found(CHILD, child=KnownDepth(" 2 ", None)) == FoundDepth(2, "record")


@pytest.mark.parametrize("depth", [None, -1, 1.5, True, "two", "", [1]])
def test_what_is_no_depth_is_as_if_nothing_were_recorded(depth: object) -> None:
    assert found(CHILD, child=KnownDepth(depth, None)) == FoundDepth(1, "shape")


def test_a_child_of_a_recorded_session_is_one_deeper() -> None:
    chain = found(GRANDCHILD, grandchild=KnownDepth(None, CHILD), child=KnownDepth(7, None))
    assert chain == FoundDepth(8, "chain")


def test_a_parent_nobody_knows_is_as_deep_as_its_key_says() -> None:
    assert found(GRANDCHILD, grandchild=KnownDepth(None, CHILD)) == FoundDepth(2, "chain")


def test_a_session_nobody_knows_is_as_deep_as_its_key_says() -> None:
    assert found("agent:main:subagent:a:subagent:b") == FoundDepth(2, "shape")


def test_a_circle_of_parents_is_cut() -> None:
    circle = found(CHILD, child=KnownDepth(None, GRANDCHILD), grandchild=KnownDepth(None, CHILD))
    assert circle == FoundDepth(2, "chain")
    assert found(CHILD, child=KnownDepth(None, CHILD)) == FoundDepth(1, "shape")


def test_a_chain_without_an_end_is_followed_no_further_than_its_limit() -> None:
    def endless(key: str) -> KnownDepth:
        return KnownDepth(None, f"{key}x")

    assert depth_of("session", endless) == FoundDepth(ANCESTORS_MAX, "chain")


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.builds(
            KnownDepth,
            st.none() | st.integers(-2, 9) | st.text(max_size=3),
            st.none() | st.sampled_from("abcdef"),
        ),
    ),
    st.sampled_from("abcdef"),
)
def test_whatever_the_parents_are_there_is_a_depth_that_is_no_less_than_the_shape_says(
    known: dict[str, KnownDepth], key: str
) -> None:
    result = depth_of(key, known.get)
    assert result.depth >= 0
    if result.source == "shape":
        assert result.depth == depth_of_shape(key)


# What a session may do, by its depth.


@pytest.mark.parametrize(
    ("depth", "deepest", "role", "scope"),
    [
        (0, 1, "main", "children"),
        (-1, 1, "main", "children"),
        (1, 1, "leaf", "none"),
        (1, 0, "leaf", "none"),
        (1, 2, "orchestrator", "children"),
        (2, 2, "leaf", "none"),
        (4, 5, "orchestrator", "children"),
        (7, 5, "leaf", "none"),
    ],
)
def test_the_role_follows_from_the_depth(depth: int, deepest: int, role: str, scope: str) -> None:
    found = capabilities_at(depth, deepest)
    assert (found.role, found.control_scope) == (role, scope)


def test_only_a_leaf_does_not_spawn() -> None:
    leaf = Capabilities(role="leaf", control_scope="none")
    orchestrator = Capabilities(role="orchestrator", control_scope="children")
    assert not leaf.can_spawn
    assert orchestrator.can_spawn
