"""Masking finds all that a slow search finds, whatever a child says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.ports.credentials import REDACTED
from infrastructure.outbound.masking.mask import MaskedText, Masker
from tests.support.tiers import examples

pytestmark = pytest.mark.long

CHUNK = 64 * 1024
LINES = 100_000
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def slowly_masked(values: list[str], text: str) -> str:
    """The text without all that stand there, and without a beginning at its end."""
    covered = [False] * len(text)
    for value in values:
        for at in range(len(text)):
            if text.startswith(value, at):
                covered[at : at + len(value)] = [True] * len(value)
    longest = max(
        (
            count
            for value in values
            for count in range(8, len(value))
            if count <= len(text) and text.endswith(value[:count])
        ),
        default=0,
    )
    covered[len(text) - longest :] = [True] * longest
    return "".join(sign for sign, is_covered in zip(text, covered, strict=True) if not is_covered)


def signs_shown(told: str) -> str:
    return told.replace(REDACTED, "")


words = st.one_of(
    st.text("ab", min_size=8, max_size=14),
    st.builds(
        lambda unit, times: (unit * times)[:40], st.text("ab", min_size=1), st.just(40)
    ).filter(lambda word: len(word) >= 8),
)


@examples(300)
@given(st.lists(words, min_size=1, max_size=4), st.data())
def test_all_that_a_slow_search_finds_is_masked_and_nothing_else(
    values: list[str], data: st.DataObject
) -> None:
    parts = st.one_of(st.sampled_from(values), st.text("ab-", max_size=12))
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    told = Masker(values).whole(text)
    assert signs_shown(told) == slowly_masked(values, text)
    assert not [one for one in values if one in told]


@examples(300)
@given(st.lists(words, min_size=1, max_size=4), st.integers(1, 30), st.data())
def test_no_value_survives_the_ends_of_pieces(
    values: list[str], size: int, data: st.DataObject
) -> None:
    parts = st.one_of(st.sampled_from(values), st.text("ab-", max_size=12))
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    masked = MaskedText(Masker(values))
    told = "".join(masked.take(text[at : at + size]) for at in range(0, len(text), size))
    told += masked.finish()
    assert not [one for one in values if one in told]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a" * 200, "a" * CHUNK),
        ("a" * 8000, "a" * CHUNK),
        ("a" * 8000 + "b", "a" * CHUNK),
        ("b" + "a" * 8000, "a" * CHUNK),
        ("ab" * 4000, "ab" * (CHUNK // 2)),
        ("ab" * 4000 + "a", "aab" * (CHUNK // 3)),
        (("a" * 99 + "b") * 30 + "a" * 99, ("a" * 99 + "b") * (CHUNK // 100)),
        ("a" * 50_000, "a" * 49_999 + "b"),
    ],
)
def test_a_value_that_repeats_itself_is_masked(value: str, text: str) -> None:
    masking = Masker([value])
    masked = MaskedText(masking)
    assert value not in masked.take(text) + masked.finish()
    assert value not in masking.whole(text)
