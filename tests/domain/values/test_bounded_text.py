"""Text from outside is made storable, put on one line, and cut where nobody sees a seam."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.values.text import replace_unstorable, single_line, utf8_prefix, whole_characters

any_text = st.text(alphabet=st.characters(), max_size=200)


def test_nul_and_lone_surrogates_are_replaced() -> None:
    assert replace_unstorable("a\x00b\ud800c") == "a\ufffdb\ufffdc"


@settings(deadline=None)
@given(any_text)
def test_what_is_storable_has_a_utf8_form_without_nul(text: str) -> None:
    assert b"\x00" not in replace_unstorable(text).encode()


def test_a_plain_line_stays_as_it_is() -> None:
    assert single_line("two  spaces, ünïcode", characters_max=50) == "two  spaces, ünïcode"


def test_line_ends_become_one_space_and_hidden_signs_go() -> None:
    assert single_line(" a\r\n\tb\u202ec\u2028d ", characters_max=50) == "a bc d"


def test_a_long_line_ends_in_an_ellipsis() -> None:
    assert single_line("abcdefgh", characters_max=5) == "abcd…"
    assert single_line("\n" * 1000 + "abc", characters_max=5) == "…"
    assert single_line("abc", characters_max=0) == ""
    assert single_line("abc", characters_max=1) == "…"
    assert single_line("abc", characters_max=3) == "abc"
    assert single_line("a\u2066\ufff9b", characters_max=9) == "ab"


@settings(deadline=None)
@given(any_text, st.integers(-3, 60))
def test_a_single_line_has_no_break_and_keeps_its_limit(text: str, limit: int) -> None:
    line = single_line(text, characters_max=limit)
    assert len(line) <= max(0, limit)
    assert all(unicodedata.category(sign) not in ("Cc", "Cs", "Zl", "Zp") for sign in line)


@pytest.mark.parametrize(
    ("text", "limit", "index"),
    [
        ("abc", 2, 2),
        ("abc", 9, 3),
        ("abc", -1, 0),
        ("ae\u0301b", 2, 1),
        ("a\u2764\ufe0fb", 2, 1),
        ("a\U0001f469\u200d\U0001f680b", 2, 1),
        ("a\U0001f469\u200d\U0001f680b", 3, 1),
        ("a\U0001f44d\U0001f3fdb", 2, 1),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, 2),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 2, 2),
        ("a\r\nb", 2, 1),
        ("\u1112\u1161\u11ab", 2, 0),
        ("\ud55c\u11ab", 1, 0),
        ("a\u11ab", 1, 1),
        ("\u1112a", 1, 1),
        ("a\U0001f1e9\U0001f1ea", 1, 1),
        ("\U0001f1e9a", 1, 1),
        ("a\U0001f3fb", 1, 0),
        ("a\U000e0020", 1, 0),
        ("\U0001f1e6\U0001f1ff", 1, 0),
        ("\u1100\u1160", 1, 0),
        ("\u1100\uac00", 1, 0),
        ("a\u1100\u1100\u1161", 2, 1),
        ("\uac00\ud7cb", 1, 0),
        ("\uac00\uac00", 1, 1),
        ("a\u200cb", 1, 0),
        ("a\uff9e", 1, 0),
        ("\u0e01\u0e33", 1, 0),
        ("\u0eab\u0eb3", 1, 0),
        ("a\u06005", 2, 1),
        ("\u0600\n", 1, 1),
        ("\u0915\u094d\u0937\u093f", 2, 0),
        ("\u0915\u093f\u0937", 2, 2),
        ("\u0915\u094d\u200d\u0937", 3, 0),
        ("\u0d15\u0d4d\u0d37", 2, 0),
        ("\u0915\u094d5", 2, 2),
    ],
)
def test_a_cut_splits_no_character_that_is_seen_as_one(text: str, limit: int, index: int) -> None:
    assert whole_characters(text, limit) == index


@settings(deadline=None)
@given(any_text, st.integers(-3, 300))
def test_a_utf8_prefix_is_a_prefix_within_its_bytes(text: str, limit: int) -> None:
    prefix = utf8_prefix(text, limit)
    assert replace_unstorable(text).startswith(prefix)
    assert len(prefix.encode()) <= max(0, limit)
