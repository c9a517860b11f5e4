"""Agent ids: which are valid, and how any text is bent into one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.values.agent_id import AGENT_ID_CHARACTERS_MAX, is_valid_agent_id, normalise_agent_id


@pytest.mark.parametrize("text", ["main", "my-research_agent01", "A", "0", "x" * 64, "  main\n"])
def test_a_well_formed_id_is_valid(text: str) -> None:
    assert is_valid_agent_id(text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "Agent not found: xyz", "../../../etc/passwd", "-a", "_a", "a" * 65, "ä", "\u212aey"],
)
def test_anything_else_is_no_agent_id(text: str) -> None:
    assert not is_valid_agent_id(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (None, "main"),
        ("", "main"),
        ("   ", "main"),
        (" Research ", "research"),
        ("Agent not found: xyz", "agent-not-found-xyz"),
        ("--a b--", "a-b"),
        ("???", "main"),
        ("x" * 80, "x" * 64),
    ],
)
def test_a_text_is_bent_into_an_id(text: str | None, normal: str) -> None:
    assert normalise_agent_id(text) == normal


@settings(deadline=None)
@given(st.text(max_size=100))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_agent_id(text)
    assert normalise_agent_id(once) == once
    assert 1 <= len(once) <= AGENT_ID_CHARACTERS_MAX


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True))
def test_a_valid_id_only_changes_its_case(text: str) -> None:
    assert normalise_agent_id(text) == text.lower()
