"""How deep a session is, and what it may do there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.session.role import (
    ANCESTORS_MAX,
    FoundDepth,
    KnownDepth,
    depth_of,
)
from domain.values.session_key import depth_of_shape

# How deep a session is: the record, else the chain of its parents, else the shape of its key.

ROOT = "agent:main:main"
CHILD = "agent:main:subagent:one"
GRANDCHILD = "agent:main:subagent:two"


DEPTHS: dict[str, tuple[str, dict[str, KnownDepth], FoundDepth]] = {
    "recorded": (GRANDCHILD, {GRANDCHILD: KnownDepth(4, ROOT)}, FoundDepth(4, "record")),
    "recorded as digits": (CHILD, {CHILD: KnownDepth(" 2 ", None)}, FoundDepth(2, "record")),
    "parent recorded": (
        GRANDCHILD,
        {GRANDCHILD: KnownDepth(None, CHILD), CHILD: KnownDepth(7, None)},
        FoundDepth(8, "chain"),
    ),
    "not on record": ("agent:main:subagent:a:subagent:b", {}, FoundDepth(2, "shape")),
    "circle": (
        CHILD,
        {CHILD: KnownDepth(None, GRANDCHILD), GRANDCHILD: KnownDepth(None, CHILD)},
        FoundDepth(2, "chain"),
    ),
    "its own parent": (CHILD, {CHILD: KnownDepth(None, CHILD)}, FoundDepth(1, "shape")),
    **{
        f"recorded as {depth!r}": (CHILD, {CHILD: KnownDepth(depth, None)}, FoundDepth(1, "shape"))
        for depth in (None, -1, 1.5, True, "two", "", [1])
    },
}


@pytest.mark.parametrize("name", DEPTHS)
def test_depth_is_of_the_record_the_chain_or_the_shape(name: str) -> None:
    key, known, expected = DEPTHS[name]
    assert depth_of(key, known.get) == expected


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
