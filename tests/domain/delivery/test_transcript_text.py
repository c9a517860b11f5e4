"""The text by which a transcript that was told is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.delivery.provided_transcript import (
    NotATranscript,
    ProvidedEntry,
    entries_of_text,
    last_usage_tokens,
    line_of,
    text_of_entries,
)

TEXTS = st.text(st.characters(codec="utf-8"))
ENTRIES = st.lists(
    st.builds(
        ProvidedEntry, st.sampled_from(["message", "text"]), st.fixed_dictionaries({"text": TEXTS})
    )
)


@given(ENTRIES)
def test_what_is_kept_is_read_again(entries: list[ProvidedEntry]) -> None:
    text = text_of_entries(map(line_of, entries))
    assert list(entries_of_text(text)) == entries
    assert text.count("\n") == len(entries)


@pytest.mark.parametrize("text", ["{\n", "[]\n", '{"text":"a"}\n', '{"kind":1}\n', "\n", "x\n"])
def test_anything_else_is_no_transcript(text: str) -> None:
    with pytest.raises(NotATranscript):
        entries_of_text(text)


def usage(taken: object, given: object) -> ProvidedEntry:
    return ProvidedEntry("usage", {"inputTokens": taken, "outputTokens": given})


def test_the_last_usage_counts() -> None:
    said = ProvidedEntry("text", {"text": "a"})
    assert last_usage_tokens([]) is None
    assert last_usage_tokens([said]) is None
    assert last_usage_tokens([usage(900, 100), usage(5, 2), said]) == 7
    assert last_usage_tokens([usage(None, 3)]) == 3
