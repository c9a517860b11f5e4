"""What a child says, without the credentials that it was given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.delivery.transcript import (
    MessageEntry,
    ParsedEntry,
    ProgressEntry,
    ResultEntry,
    TextEntry,
    ToolEntry,
    UsageEntry,
)
from infrastructure.outbound.masking.mask import MaskedText, Masker

KEY = "sk-canary-0123456789"
PEM = "-----BEGIN KEY-----\nAAAAbbbbCCCCdddd\nEEEEffffGGGGhhhh\n-----END KEY-----\n"


def in_pieces(masking: Masker, text: str, size: int) -> str:
    masked = MaskedText(masking)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(masked.take(piece) for piece in pieces) + masked.finish()


def test_a_value_is_masked_wherever_it_stands() -> None:
    assert Masker([KEY]).whole(f"key={KEY}; {KEY}") == "key=[redacted]; [redacted]"


def test_a_short_value_and_none_at_all_mask_nothing() -> None:
    assert Masker(["1234567", ""]).whole("1234567 and more") == "1234567 and more"
    assert Masker().whole("all of it") == "all of it"


def test_values_that_overlap_are_masked_as_one() -> None:
    assert Masker(["abcdefgh", "efghijkl"]).whole("<abcdefghijkl>") == "<[redacted]>"
    assert Masker(["aaaaaaaa"]).whole("<aaaaaaaaaaa>") == "<[redacted]>"


def test_a_value_is_masked_as_json_writes_it_too() -> None:
    value = 'quote" and\nline é'
    for shown in (r"quote\" and\nline é", r"quote\" and\nline \u00e9"):
        assert Masker([value]).whole(f'{{"k":"{shown}"}}') == '{"k":"[redacted]"}'


def test_each_line_of_a_value_is_masked_for_itself() -> None:
    assert Masker([PEM]).whole("only AAAAbbbbCCCCdddd here") == "only [redacted] here"


def test_a_value_that_was_cut_at_the_end_is_masked() -> None:
    assert Masker([KEY]).whole(f"key={KEY[:12]}") == "key=[redacted]"
    assert Masker([KEY]).whole(f"key={KEY[:7]}") == f"key={KEY[:7]}"


@pytest.mark.parametrize("size", [1, 2, 7, 19, 1000])
def test_a_value_in_pieces_is_masked(size: int) -> None:
    text = f"before {KEY} between sk-canary {PEM} behind sk-c"
    told = in_pieces(Masker([KEY, PEM]), text, size)
    assert told == "before [redacted] between sk-canary [redacted] behind sk-c"


def test_nothing_waits_but_what_may_be_the_beginning_of_a_value() -> None:
    masked = MaskedText(Masker([KEY]))
    assert masked.take("a line\nhalf a li") == "a line\nhalf a li"
    assert masked.take("ne sk-can") == "ne "
    assert masked.take("not") == "sk-cannot"


def test_a_value_made_of_beginnings_of_itself_is_not_waited_for_without_end() -> None:
    masked = MaskedText(Masker(["abababab"]))
    told = "".join(masked.take("ab") for _ in range(1000)) + masked.finish()
    assert "abababab" not in told
    assert len(told) > 100


@settings(deadline=None)
@given(
    st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=3),
    st.text("ab-", max_size=80),
    st.integers(1, 20),
)
def test_no_value_survives_in_whatever_pieces_it_comes(
    values: list[str], text: str, size: int
) -> None:
    masking = Masker(values)
    for told in (masking.whole(text), in_pieces(masking, text, size)):
        assert not [one for one in values if one in told]
    if not [one for one in values if one[:8] in text]:
        assert masking.whole(text) == text


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (MessageEntry("assistant", KEY), MessageEntry("assistant", "[redacted]")),
        (ToolEntry(KEY, KEY, None), ToolEntry("[redacted]", "[redacted]", None)),
        (UsageEntry(1, 2, KEY), UsageEntry(1, 2, "[redacted]")),
        (UsageEntry(1, 2, None), UsageEntry(1, 2, None)),
        (ProgressEntry(KEY), ProgressEntry("[redacted]")),
        (ResultEntry(KEY), ResultEntry("[redacted]")),
        (TextEntry(KEY), TextEntry("[redacted]")),
    ],
)
def test_every_text_of_an_entry_is_masked(entry: ParsedEntry, shown: ParsedEntry) -> None:
    assert Masker([KEY]).entry(entry) == shown
