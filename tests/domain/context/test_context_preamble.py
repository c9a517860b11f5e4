"""A parent's context is cut where nobody minds, and marked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.context.preamble import (
    TRUNCATED,
    preamble_block,
    preamble_sizes,
    preamble_warning,
    truncated_preamble,
)
from domain.values.text import whole_characters

SPACES = " \n\t\x1c\x85\xa0\u1680\u2003\u2028\u3000"
UNSEEN = "\0\xad\u180e\u200b\u200d\u2060\ufeff\u115f\u3164\uffa0\u2800"
SIGNS = "ab \n\r\u0301\u0600\u0915\u094d\u200d\U0001f469\U0001f1e9"


def test_a_text_within_the_limit_stays_as_it_is() -> None:
    assert truncated_preamble("  two words ", 12) == "  two words "
    assert truncated_preamble("x" * 4000) == "x" * 4000


def test_a_long_text_is_cut_between_words_and_marked() -> None:
    assert truncated_preamble("alpha beta gamma", 12) == "alpha beta...(truncated)"
    assert truncated_preamble("alpha beta gamma", 10) == "alpha beta...(truncated)"
    assert truncated_preamble("alpha beta gamma", 9) == "alpha...(truncated)"


def test_the_usual_limit_is_4000_characters() -> None:
    cut = truncated_preamble("word " * 1000)
    assert truncated_preamble("x" * 4001) == "x" * 4000 + TRUNCATED
    assert cut == ("word " * 800).rstrip() + TRUNCATED


def test_a_cut_between_words_may_lose_just_half() -> None:
    assert truncated_preamble("hello brave new world", 10) == f"hello{TRUNCATED}"
    assert truncated_preamble("hell brave new world", 10) == f"hell brave{TRUNCATED}"


def test_a_text_without_spaces_is_cut_at_the_limit() -> None:
    assert truncated_preamble("a " + "漢" * 50, 20) == "a " + "漢" * 18 + TRUNCATED


def test_a_cut_splits_no_character() -> None:
    assert truncated_preamble("a" + "e\u0301" * 10, 4) == "ae\u0301...(truncated)"
    assert truncated_preamble("ab\U0001f469\u200d\U0001f680\U0001f680", 4) == "ab...(truncated)"


def test_a_cut_between_words_splits_no_character() -> None:
    assert truncated_preamble("aaaa \u0600 bcd", 7) == "aaaa...(truncated)"
    assert truncated_preamble("one two\r\nthree", 8) == "one two...(truncated)"
    assert truncated_preamble("\u0915\u094d\u0937" * 4, 8) == "\u0915\u094d\u0937" * 2 + TRUNCATED


def test_a_blank_that_belongs_to_the_sign_before_it_takes_that_along() -> None:
    assert truncated_preamble("abcd\u0600  zzzzz", 6) == f"abcd{TRUNCATED}"


@settings(deadline=None)
@given(st.text(SIGNS, max_size=40), st.integers(1, 30))
def test_wherever_it_is_cut_it_is_between_characters(text: str, limit: int) -> None:
    cut = truncated_preamble(text, limit)
    if cut and cut != text:
        at = len(cut) - len(TRUNCATED)
        assert whole_characters(text, at) == at


def test_both_sizes_are_told_the_mark_not_counted() -> None:
    sizes = preamble_sizes("älpha beta gamma", 12)
    assert (sizes.given_characters, sizes.given_bytes) == (16, 17)
    assert (sizes.kept_characters, sizes.kept_bytes, sizes.characters_max) == (10, 11, 12)
    whole = preamble_sizes("beta" + TRUNCATED, 100)
    assert whole.given_bytes == whole.kept_bytes == 18


def test_a_caller_is_told_of_a_cut_and_of_nothing_else() -> None:
    assert preamble_warning(preamble_sizes("alpha", 5), "a") is None
    assert preamble_warning(preamble_sizes("alpha beta", 6), "a") == (
        'contextPreamble has 10 characters and agent "a" takes 6 (contextPreambleMaxChars):'
        " the first 5 were handed over"
    )
    assert preamble_warning(preamble_sizes("alpha", 0), "a") == (
        'contextPreamble has 5 characters and agent "a" takes 0 (contextPreambleMaxChars):'
        " nothing of it was handed over"
    )


@pytest.mark.parametrize("sign", [*SPACES, *UNSEEN], ids=ascii)
def test_what_nobody_sees_is_no_context(sign: str) -> None:
    assert truncated_preamble(sign * 5) == truncated_preamble(f" {sign}" * 9000) == ""
    assert preamble_block(sign * 5) == ""
    assert truncated_preamble(f"{sign}x") == f"{sign}x"


def test_blank_context_is_no_context() -> None:
    assert truncated_preamble(" \n") == ""
    assert truncated_preamble("text", 0) == ""
    assert preamble_block("") == ""


def test_a_preamble_has_its_own_form() -> None:
    assert preamble_block("hi") == "[Session Context]\n[Context from parent agent]\nhi"


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(1, 50))
def test_what_is_left_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    cut = truncated_preamble(text, limit)
    if len(text) <= limit:
        assert cut in (text, "")
    elif cut:
        head = cut.removesuffix(TRUNCATED)
        assert text.startswith(head)
        assert len(head) <= limit
