"""Texts, ids and moments."""

import base64
import string
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.values.agent_id import AGENT_ID_CHARACTERS_MAX, is_valid_agent_id, normalise_agent_id
from domain.values.base64 import decode_strict_base64, encoded_length_max
from domain.values.json_text import NotJsonError, compact_json, read_json
from domain.values.moments import RunStageName, is_time_ago, parse_duration, parse_moment
from domain.values.text import replace_unstorable, single_line, utf8_prefix, whole_characters

# Agent ids: which are valid, and how any text is bent into one.


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
        ("???", "main"),
        (" Research ", "research"),
        ("Agent not found: xyz", "agent-not-found-xyz"),
        ("--a b--", "a-b"),
        ("x" * 80, "x" * 64),
    ],
)
def test_text_is_bent_into_an_agent_id(text: str | None, normal: str) -> None:
    assert normalise_agent_id(text) == normal


@settings(deadline=None)
@given(st.text(max_size=100))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_agent_id(text)
    assert normalise_agent_id(once) == once
    assert 1 <= len(once) <= AGENT_ID_CHARACTERS_MAX


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", fullmatch=True))
def test_valid_id_only_changes_its_case(text: str) -> None:
    assert normalise_agent_id(text) == text.lower()


# External text is made storable, put on one line, and cut between grapheme clusters.

any_text = st.text(alphabet=st.characters(), max_size=200)


def test_nul_and_lone_surrogates_are_replaced() -> None:
    assert replace_unstorable("a\x00b\ud800c") == "a\ufffdb\ufffdc"


@settings(deadline=None)
@given(any_text)
def test_storable_text_is_utf8_without_nul(text: str) -> None:
    assert b"\x00" not in replace_unstorable(text).encode()


def test_line_ends_become_one_space_and_hidden_signs_go() -> None:
    assert single_line(" a\r\n\tb\u202ec\u2028d ", characters_max=50) == "a bc d"


def test_long_line_ends_in_an_ellipsis() -> None:
    assert single_line("abcdefgh", characters_max=5) == "abcd…"
    assert single_line("\n" * 1000 + "abc", characters_max=5) == "…"
    assert single_line("abc", characters_max=0) == ""
    assert single_line("abc", characters_max=1) == "…"
    assert single_line("abc", characters_max=3) == "abc"
    assert single_line("a\u2066\ufff9b", characters_max=9) == "ab"


@settings(deadline=None)
@given(any_text, st.integers(-3, 60))
def test_single_line_has_no_break_and_keeps_its_limit(text: str, limit: int) -> None:
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
def test_cut_splits_no_character_that_is_seen_as_one(text: str, limit: int, index: int) -> None:
    assert whole_characters(text, limit) == index


@settings(deadline=None)
@given(any_text, st.integers(-3, 300))
def test_utf8_prefix_is_a_prefix_within_its_bytes(text: str, limit: int) -> None:
    prefix = utf8_prefix(text, limit)
    assert replace_unstorable(text).startswith(prefix)
    assert len(prefix.encode()) <= max(0, limit)


# JSON from outside is read strictly and never surprises.

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(json_values)
def test_what_was_written_is_read_again(value: object) -> None:
    assert read_json(compact_json(value)) == value


def test_json_nesting_has_a_limit() -> None:
    read_json("[" * 200 + "]" * 200)
    with pytest.raises(NotJsonError):
        read_json("[" * 202 + "]" * 202)


def test_oddities_of_json_are_settled() -> None:
    assert read_json('\ufeff{"a": 1, "a": 2}\n') == {"a": 2}
    assert read_json(f"[{'9' * 5000}, 1e999, -1e999]") == [None, None, None]
    assert read_json("123456789012345678901234567890") == 123456789012345678901234567890


# Base64 is read strictly, within a limit.

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
SPACES = " \t\r\n\f\v"


def by_hand(text: str) -> bytes | None:
    """Decode base64 bit by bit, without a library or limits."""
    signs = [sign for sign in text if sign not in SPACES]
    coded = [sign for sign in signs if sign != "="]
    padding = len(signs) - len(coded)
    if not coded or padding > 2 or len(signs) % 4 or signs[len(coded) :] != ["="] * padding:
        return None
    if any(sign not in ALPHABET for sign in coded):
        return None
    bits = "".join(f"{ALPHABET.index(sign):06b}" for sign in coded)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) // 8 * 8, 8))


@given(st.binary(min_size=1, max_size=60), st.data())
def test_base64_is_decoded_around_white_space(content: bytes, data: st.DataObject) -> None:
    signs = list(base64.b64encode(content).decode())
    spaced = "".join(sign + data.draw(st.sampled_from(["", *SPACES])) for sign in signs)
    assert decode_strict_base64(spaced, 60) == content


@given(st.text(ALPHABET[:6] + "+/=-_" + SPACES + "\0\u00a0é", max_size=14))
def test_base64_of_any_text_is_decoded_as_by_hand(text: str) -> None:
    assert decode_strict_base64(text, 1000) == by_hand(text)


@given(st.text(ALPHABET + "=", max_size=12))
def test_what_is_accepted_the_library_accepts_too(text: str) -> None:
    decoded = decode_strict_base64(text, 1000)
    if decoded is not None:
        assert base64.b64decode(text, validate=True) == decoded


@given(st.binary(min_size=1, max_size=40), st.integers(0, 41))
def test_more_bytes_than_the_limit_are_none(content: bytes, most: int) -> None:
    decoded = decode_strict_base64(base64.b64encode(content).decode(), most)
    assert decoded == (content if len(content) <= most else None)


def test_limit_needs_so_many_characters() -> None:
    for most in range(20):
        assert encoded_length_max(most) == len(base64.b64encode(bytes(most)))


def test_base64_white_space_has_a_limit() -> None:
    encoded = base64.b64encode(bytes(1024)).decode()
    longest = encoded_length_max(1024)
    assert decode_strict_base64(encoded + " " * longest, 1024) == bytes(1024)
    assert decode_strict_base64(encoded + " " * (longest + 1), 1024) is None


# One grammar for durations and moments.

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("30", timedelta(seconds=30)),
        ("0", timedelta()),
        ("10m", timedelta(minutes=10)),
        ("1.5h", timedelta(minutes=90)),
        ("1d", timedelta(days=1)),
        ("2w", timedelta(days=14)),
    ],
)
def test_duration_is_number_and_unit(text: str, length: timedelta) -> None:
    assert parse_duration(text) == length


@pytest.mark.parametrize("text", ["12h", "-12h", "720m", "-0.5d"])
def test_moment_counts_back_with_or_without_minus(text: str) -> None:
    assert parse_moment(text, NOW) == NOW - timedelta(hours=12)
    assert is_time_ago(text)


def test_moment_is_position_instant_or_stage() -> None:
    assert parse_moment("pos:42", NOW) == 42
    assert parse_moment("2026-03-01T09:00:00+01:00", NOW) == datetime(2026, 3, 1, 8, tzinfo=UTC)
    assert parse_moment("run:reviewer@started", NOW) == RunStageName("run:reviewer@started")


@pytest.mark.parametrize(
    ("text", "shown"), [("18:00", "18:00"), ("a\x1b[2J", "a?[2J"), ("x" * 50, f"{'x' * 40}…")]
)
def test_text_that_is_no_moment_is_told_what_to_try(text: str, shown: str) -> None:
    with pytest.raises(ValueError, match="is not a moment") as refused:
        parse_moment(text, NOW)
    assert str(refused.value).startswith(
        f'"{shown}" is not a moment. Use 2026-11-25T18:00:00Z, -2h, pos:120'
    )


NOT_LENGTHS = ["", " 5m", "5m ", "5 m", "--5m", "+5m", "5y", "m", "5.m", "36501d", "9999999999w"]


@pytest.mark.parametrize("text", [*NOT_LENGTHS, "-5m", "\u0665m", "pos:4", "1h30m"])
def test_no_duration_names_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", [*NOT_LENGTHS, "5", "-5", "pos:", "pos:-1", "yesterday", "2026-03-01", "-\u0665m"]
)
def test_no_moment_names_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match="moment"):
        parse_moment(text, NOW)
