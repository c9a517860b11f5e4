"""Output of a child, plain, in base64 or in URLs, without its credentials."""

import base64
import json
import random
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.ports.credentials import REDACTED
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
from tests.support.tiers import examples

KEY = "sk-canary-0123456789"
PEM = "-----BEGIN KEY-----\nAAAAbbbbCCCCdddd\nEEEEffffGGGGhhhh\n-----END KEY-----\n"


def in_pieces(masking: Masker, text: str, size: int) -> str:
    masked = MaskedText(masking)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(masked.take(piece) for piece in pieces) + masked.finish()


def test_value_is_masked() -> None:
    assert Masker([KEY]).whole(f"key={KEY}; {KEY}") == "key=[redacted]; [redacted]"


def test_short_value_is_not_masked() -> None:
    assert Masker(["1234567", ""]).whole("1234567 and more") == "1234567 and more"
    assert Masker().whole("all of it") == "all of it"


def test_values_that_overlap_are_masked_as_one() -> None:
    assert Masker(["abcdefgh", "efghijkl"]).whole("<abcdefghijkl>") == "<[redacted]>"
    assert Masker(["aaaaaaaa"]).whole("<aaaaaaaaaaa>") == "<[redacted]>"


def test_value_is_masked_as_json_writes_it() -> None:
    value = 'quote" and\nline é'
    for shown in (r"quote\" and\nline é", r"quote\" and\nline \u00e9"):
        assert Masker([value]).whole(f'{{"k":"{shown}"}}') == '{"k":"[redacted]"}'


def test_each_line_of_a_value_is_masked() -> None:
    assert Masker([PEM]).whole("only AAAAbbbbCCCCdddd here") == "only [redacted] here"


def test_value_cut_at_the_end_is_masked() -> None:
    assert Masker([KEY]).whole(f"key={KEY[:12]}") == "key=[redacted]"
    assert Masker([KEY]).whole(f"key={KEY[:7]}") == f"key={KEY[:7]}"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_value_in_pieces_is_masked(size: int) -> None:
    text = f"before {KEY} between sk-canary {PEM} behind sk-c"
    result = in_pieces(Masker([KEY, PEM]), text, size)
    assert result == "before [redacted] between sk-canary [redacted] behind sk-c"


def test_only_beginning_of_value_waits() -> None:
    masked = MaskedText(Masker([KEY]))
    assert masked.take("a line\nhalf a li") == "a line\nhalf a li"
    assert masked.take("ne sk-can") == "ne "
    assert masked.take("not") == "sk-cannot"


def test_value_of_its_own_beginnings_does_not_wait_for_ever() -> None:
    masked = MaskedText(Masker(["abababab"]))
    result = "".join(masked.take("ab") for _ in range(1000)) + masked.finish()
    assert "abababab" not in result
    assert len(result) > 100


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (MessageEntry("assistant", KEY), MessageEntry("assistant", "[redacted]")),
        (ToolEntry(KEY, KEY, None, 5), ToolEntry("[redacted]", "[redacted]", None, 5)),
        (UsageEntry(1, 2, KEY), UsageEntry(1, 2, "[redacted]")),
        (UsageEntry(1, 2, None), UsageEntry(1, 2, None)),
        (ProgressEntry(KEY), ProgressEntry("[redacted]")),
        (ResultEntry(KEY), ResultEntry("[redacted]")),
        (TextEntry(KEY), TextEntry("[redacted]")),
    ],
)
def test_every_text_of_an_entry_is_masked(entry: ParsedEntry, shown: ParsedEntry) -> None:
    assert Masker([KEY]).entry(entry) == shown


CHUNK = 64 * 1024


def slowly_masked(values: list[str], text: str) -> str:
    """Return the text without any of the values, and without a beginning of one at its end."""
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


words = st.one_of(
    st.text("ab", min_size=8, max_size=14),
    st.builds(
        lambda unit, times: (unit * times)[:40], st.text("ab", min_size=1), st.just(40)
    ).filter(lambda word: len(word) >= 8),
)


@pytest.mark.long
@examples(300)
@given(st.lists(words, min_size=1, max_size=4), st.data())
def test_masking_finds_all_that_a_slow_search_finds(values: list[str], data: st.DataObject) -> None:
    parts = st.one_of(st.sampled_from(values), st.text("ab-", max_size=12))
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    result = Masker(values).whole(text)
    assert result.replace(REDACTED, "") == slowly_masked(values, text)
    assert not [value for value in values if value in result]


@pytest.mark.long
@examples(300)
@given(st.lists(words, min_size=1, max_size=4), st.integers(1, 30), st.data())
def test_no_value_survives_in_pieces(values: list[str], size: int, data: st.DataObject) -> None:
    parts = st.one_of(st.sampled_from(values), st.text("ab-", max_size=12))
    text = "".join(data.draw(st.lists(parts, max_size=8)))
    result = in_pieces(Masker(values), text, size)
    assert not [value for value in values if value in result]


@pytest.mark.long
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
def test_value_that_repeats_itself_is_masked(value: str, text: str) -> None:
    masking = Masker([value])
    masked = MaskedText(masking)
    assert value not in masked.take(text) + masked.finish()
    assert value not in masking.whole(text)


ODD_KEY = "sk-canary/0123456789+é?"
LINES = "\n".join(letter * 64 for letter in "AbCdEfGh")
LONG_PEM = f"-----BEGIN KEY-----\n{LINES}\n-----END KEY-----\n"

# Longer than several blocks of the search, with characters that encodings escape.
LONG = "".join(random.Random(1).choices([chr(sign) for sign in range(33, 127)], k=6 * 1024))
VALUES = (ODD_KEY, LONG_PEM, "8 chars!", "with some blanks in it", LONG)
AROUND = [(f"{'x' * before}", f"{'y' * behind}") for before in range(3) for behind in range(3)]
Encoding = Callable[[bytes], bytes]

BASES: dict[str, Encoding] = {
    "plain": base64.b64encode,
    "url-safe": base64.urlsafe_b64encode,
    "no padding": lambda secret: base64.b64encode(secret).rstrip(b"="),
    "url-safe, no padding": lambda secret: base64.urlsafe_b64encode(secret).rstrip(b"="),
    "in lines": base64.encodebytes,
    "in lines of another end": lambda secret: base64.encodebytes(secret).replace(b"\n", b"\r\n"),
    "in lines of a literal end": lambda secret: base64.encodebytes(secret).replace(b"\n", b"\\n"),
    "in short lines": lambda secret: b"\n".join(
        base64.b64encode(secret)[at : at + 5] for at in range(0, len(secret) * 2, 5)
    ),
    "in a URL": lambda secret: quote(base64.b64encode(secret), safe="").encode(),
}

URLS: dict[str, Callable[[str], str]] = {
    "a part": lambda secret: quote(secret, safe=""),
    "a path": quote,
    "a form": quote_plus,
    "small hexadecimals": lambda text: (
        quote(text, safe="").replace("%2F", "%2f").lower()
        if text.islower()
        else "".join(f"%{byte:02x}" for byte in text.encode())
    ),
    "all signs": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "other signs": lambda secret: quote(secret, safe="!'()*~;,/?:@&=+$#"),
}


def shown_signs(text: str) -> str:
    """Return the shown part, without the delimiters of a value and the characters that join
    lines.
    """
    for sign in (REDACTED, "\\n", "\r", "\n", "%3D", "="):
        text = text.replace(sign, "")
    return text


def ways(text: str) -> list[Callable[[Masker], str]]:
    """Return ways to mask the text: at once, and in pieces."""
    sizes = (1, 3, 7, 64, 4096) if len(text) < 200 else (5, 997)[len(text) > 2000 :]
    return [
        lambda masking: masking.whole(text),
        *(lambda masking, size=size: in_pieces(masking, text, size) for size in sizes),
    ]


@pytest.mark.long
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:8])
@pytest.mark.parametrize("base", BASES)
def test_value_in_base64_is_masked(base: str, value: str) -> None:
    masking = Masker([value])
    for before, behind in AROUND[:: 4 if len(value) > 100 else 1]:
        text = BASES[base](f"{before}{value}{behind}".encode()).decode()
        # A sign at each end may belong to the surrounding text; lines are masked as they end.
        few = 4 + len(before) + len(behind) + (4 if value is LONG_PEM else 0)
        few += 7 if "lines" in base else 0
        for way in ways(f"<{text}>"):
            result = way(masking)
            assert REDACTED in result
            assert len(shown_signs(result)) <= few + 2, (result, text)
    for way in ways(f"<{BASES[base](value.strip().encode()).decode()}>"):
        assert len(shown_signs(way(masking))) <= 2 + (7 if "lines" in base else 0)


@pytest.mark.long
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:8])
@pytest.mark.parametrize("url", URLS)
def test_value_in_url_is_masked(url: str, value: str) -> None:
    masking = Masker([value])
    text = f"https://x/?q=100%&key={URLS[url](value)}&z=%20"
    for way in ways(text):
        result = way(masking).replace("%0A", "").replace("%0a", "").replace("\n", "")
        # A long value is masked piece by piece.
        first, behind = result.index(REDACTED), result.rindex(REDACTED) + len(REDACTED)
        assert set(result[first:behind].split(REDACTED)) == {""}
        result = result[:first] + REDACTED + result[behind:]
        assert result == "https://x/?q=100%&key=[redacted]&z=%20"


def test_encoded_line_of_a_value_is_masked() -> None:
    masking = Masker(["somebody\nmy-secret-of-all"])
    authorization = base64.b64encode(b"user:my-secret-of-all").decode()
    assert masking.whole(authorization)[:7] == authorization[:7]
    assert masking.whole(authorization)[7:] == "[redacted]"
    assert masking.whole(quote("<my-secret-of-all>")) == "%3C[redacted]%3E"


def test_encoded_json_is_masked() -> None:
    value = 'quote"of the secret\nand é'
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        for text in (quote(written, safe=""), base64.b64encode(written.encode()).decode()):
            result = Masker([value]).whole(text)
            assert REDACTED in result
            assert len(result) <= len(REDACTED) + 6


def test_short_value_is_not_masked_when_encoded() -> None:
    text = base64.b64encode(b"1234567").decode() + " %31%32%33%34%35%36%37"
    assert Masker(["1234567"]).whole(text) == text


def test_cut_encoding_is_masked() -> None:
    encoded = base64.b64encode(ODD_KEY.encode()).decode()
    assert Masker([ODD_KEY]).whole(f"key={encoded[:12]}") == "key=[redacted]"
    assert Masker([ODD_KEY]).whole(f"key={encoded[:12]}\n") == "key=[redacted]\n"
    assert Masker([ODD_KEY]).whole(f"key={encoded[:7]}") == f"key={encoded[:7]}"
    assert Masker([ODD_KEY]).whole("key=sk-canary%2F01%3") == "key=[redacted]"


def test_line_is_told_though_it_may_begin_a_value() -> None:
    masked = MaskedText(Masker([ODD_KEY]))
    encoded = base64.b64encode(ODD_KEY.encode()).decode()
    for text in (f"to {encoded[:1]}\n", f"to {encoded[:7]}\r\n", "100% \n"):
        assert masked.take(text) == text
    assert masked.take(f"to {encoded[:7]}\n") == f"to {encoded[:7]}\n"
    result = masked.take(f"{encoded[7:20]}\n") + masked.take(f"{encoded[20:]}\nmore\n")
    assert result == "[redacted]\nmore\n"


def test_lines_far_apart_are_no_value() -> None:
    encoded = base64.b64encode(ODD_KEY.encode()).decode()
    text = f"{encoded[:10]}\n\n\n\n\n\n{encoded[10:]}"
    assert Masker([ODD_KEY]).whole(text) == text


def test_cut_sign_of_url_waits_for_its_rest() -> None:
    masked = MaskedText(Masker(["/secret/of/all"]))
    assert masked.take("at 100%") == "at 100"
    assert masked.take("2") == ""
    assert masked.take("5 and %2") == "%25 and "
    assert masked.take("fsecret%2fof%2Fall%") == "[redacted]"
    assert masked.finish() == "%"


values = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8, max_size=40)


@examples(100)
@given(
    st.lists(values, min_size=1, max_size=3),
    st.binary(max_size=7),
    st.binary(max_size=7),
    st.sampled_from(sorted(BASES)),
    st.integers(1, 40),
)
def test_no_encoded_value_survives_in_pieces(
    known: list[str], before: bytes, behind: bytes, base: str, size: int
) -> None:
    masking = Masker(known)
    for item in known:
        content = item.strip()
        if len(content) < 8 or len(content.splitlines()) > 1:
            continue
        text = BASES[base](before + content.encode() + behind).decode()
        result = shown_signs(in_pieces(masking, f" {text} ", size))
        # The surrounding text, a sign at each end, and few signs before the end of a line.
        around = (len(before) + len(behind)) * 4 / 3 * (3 if "URL" in base else 1)
        assert len(result) <= around + 2 + 4 + 7, (result, text)


@examples(100)
@given(
    st.text(st.sampled_from("ab+/-_=%\n\r\\n0123456789ABCDEFabcdef é"), max_size=200),
    st.integers(1, 40),
)
def test_nothing_else_is_masked_or_lost(text: str, size: int) -> None:
    masking = Masker(["a-value-that-is-nowhere", "x%41\nsecond-line"])
    assert in_pieces(masking, text, size) == masking.whole(text) == text


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "%" * 65536, "%41" * 22000, "\n" * 65536, "a\n" * 32768, "\\n" * 32768,
        "A" * 65536, "QUFB" * 16384, "%51%55%46%42" * 5400,
    ],
    ids=lambda text: repr(text[:6]),
)  # fmt: skip
def test_time_depends_on_length_alone(text: str) -> None:
    masking = Masker(
        [LONG, "A" * 8000, *(f"value-number-{number}" for number in range(30)), LONG_PEM]
    )
    began = time.monotonic()
    masked = MaskedText(masking)
    for _ in range(4):
        masked.take(text)
    masked.finish()
    once = time.monotonic() - began
    assert once < 6


def test_waiting_text_is_bounded() -> None:
    masked = MaskedText(Masker([LONG]))
    text = "\r\n".join(base64.b64encode(LONG.encode()).decode()[:10_000])
    result, waiting = 0, list[int]()
    for at in range(0, len(text), 100):
        result += len(masked.take(text[at : at + 100]))
        waiting.append(len(masked._text))
    assert 1000 < max(waiting) < 10_000 < len(text)
    assert result > 0


def test_json_around_encoded_value_stays_json() -> None:
    encoded = base64.b64encode(f"<{ODD_KEY}>".encode()).decode()
    answer = json.loads(
        Masker([ODD_KEY]).whole(json.dumps({"k": encoded, "u": quote(ODD_KEY, safe="")}))
    )
    assert REDACTED in answer["k"]
    assert answer["u"] == REDACTED
