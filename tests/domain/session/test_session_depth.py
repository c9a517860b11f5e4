"""How deep a session is: the record, else the chain of its parents, else the shape of its key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.session.role import ANCESTORS_MAX, FoundDepth, KnownDepth, depth_of
from domain.values.session_key import depth_of_shape

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
