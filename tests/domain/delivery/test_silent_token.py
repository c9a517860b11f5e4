"""Replies that mean: tell nobody."""

import pytest

from domain.delivery.silence import is_silent, without_silent_tokens


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        ("", False),
        ("ANNOUNCE_SKIP", True),
        (" ANNOUNCE_SKIP\n", True),
        ("announce_skip", False),
        ("ANNOUNCE_SKIP.", False),
        ("NO_REPLY", True),
        ("  No_RePlY  ", True),
        ("Here is a response.\n\nNO_REPLY", False),
    ],
)
def test_only_the_exact_token_is_silent(text: str, silent: bool) -> None:
    assert is_silent(text) is silent


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("interject.NO_REPLY", "interject.NO_REPLY"),
        ("NO_REPLY 👍", "NO_REPLY 👍"),
        ("NO_REPLY ok NO_REPLY", "NO_REPLY ok"),
        ("some text **NO_REPLY", "some text"),
        ("😄 NO_REPLY", "😄"),
        ("text\nNO_REPLY  ", "text"),
        ("NO_REPLYThe user", "The user"),
        ("plain", "plain"),
        ("** NO_REPLY", "**"),
        ("***NO_REPLY", ""),
    ],
)
def test_a_token_at_an_end_is_left_out(text: str, shown: str) -> None:
    assert without_silent_tokens(text) == shown


def test_a_long_reply_costs_no_more_than_its_length() -> None:
    assert without_silent_tokens(" " * 500_000 + "x NO_REPLY") == "x"
