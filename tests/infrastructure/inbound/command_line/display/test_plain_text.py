"""Texts of others made safe to print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.inbound.command_line.display.plain_text import printable_block, printable_line


def test_a_terminal_sequence_is_shown_and_not_obeyed() -> None:
    assert printable_block("\x1b[2Jgone\x07") == "\\x1b[2Jgone\\x07"


@pytest.mark.parametrize(
    ("sign", "shown"),
    [
        ("\x9b", "\\x9b"),  # begins a sequence in eight-bit terminals
        ("\x7f", "\\x7f"),
        ("\r", "\\x0d"),  # would write over the line
        ("\u202e", "\\u202e"),  # turns the reading order round
        ("\u2066", "\\u2066"),
        ("\u200b", "\\u200b"),
        ("\u2028", "\\u2028"),
        ("\udce9", "\\udce9"),  # half a character
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_signs_that_are_no_text_are_escaped(sign: str, shown: str) -> None:
    assert printable_block(f"a{sign}b") == f"a{shown}b"


def test_letters_emoji_lines_and_tabs_stay() -> None:
    text = "naïve 漢字\n\t👩\u200d🚀 ok"
    assert printable_block(text) == text


def test_line_ends_of_other_systems_become_plain_ones() -> None:
    assert printable_block("a\r\nb") == "a\nb"


def test_a_cell_is_one_line() -> None:
    assert printable_line("first\n  second\tthird\u2028fourth") == "first second third fourth"


def test_a_long_text_is_cut_with_a_sign_of_it() -> None:
    assert printable_line("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert printable_line("x" * 10, 10) == "x" * 10


def test_what_is_no_text_is_shown_as_one() -> None:
    assert printable_line(7) == "7"


@given(st.text(alphabet=st.characters()))
def test_nothing_that_is_printed_can_steer_a_terminal(text: str) -> None:
    for shown in (printable_block(text), printable_line(text)):
        assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
        assert not any(0x7F <= ord(sign) < 0xA0 for sign in shown)
        shown.encode("utf-8")
    assert "\n" not in printable_line(text)
    assert len(printable_line(text)) <= 200
