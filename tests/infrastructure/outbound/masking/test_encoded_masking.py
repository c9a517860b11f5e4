"""What a child says in base64, or as part of a URL, without the credentials that it was given."""

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
from infrastructure.outbound.masking.mask import MaskedText, Masker
from tests.support.tiers import examples

KEY = "sk-canary/0123456789+é?"
LINES = "\n".join(letter * 64 for letter in "AbCdEfGh")
PEM = f"-----BEGIN KEY-----\n{LINES}\n-----END KEY-----\n"
# Several of the blocks and forms in which a value is looked for.
LONG = "".join(random.Random(1).choices([chr(sign) for sign in range(33, 127)], k=6 * 1024))
VALUES = (KEY, PEM, "8 chars!", "with some blanks in it", LONG)
AROUND = [(f"{'x' * before}", f"{'y' * behind}") for before in range(3) for behind in range(3)]

Encoding = Callable[[bytes], bytes]
BASES: dict[str, Encoding] = {
    "plain": base64.b64encode,
    "url-safe": base64.urlsafe_b64encode,
    "no padding": lambda one: base64.b64encode(one).rstrip(b"="),
    "url-safe, no padding": lambda one: base64.urlsafe_b64encode(one).rstrip(b"="),
    "in lines": base64.encodebytes,
    "in lines of another end": lambda one: base64.encodebytes(one).replace(b"\n", b"\r\n"),
    "in lines of a literal end": lambda one: base64.encodebytes(one).replace(b"\n", b"\\n"),
    "in short lines": lambda one: b"\n".join(
        base64.b64encode(one)[at : at + 5] for at in range(0, len(one) * 2, 5)
    ),
    "in a URL": lambda one: quote(base64.b64encode(one), safe="").encode(),
}
URLS: dict[str, Callable[[str], str]] = {
    "a part": lambda one: quote(one, safe=""),
    "a path": quote,
    "a form": quote_plus,
    "small hexadecimals": lambda one: (
        quote(one, safe="").replace("%2F", "%2f").lower()
        if one.islower()
        else "".join(f"%{byte:02x}" for byte in one.encode())
    ),
    "all signs": lambda one: "".join(f"%{byte:02X}" for byte in one.encode()),
    "other signs": lambda one: quote(one, safe="!'()*~;,/?:@&=+$#"),
}


def in_pieces(masking: Masker, text: str, size: int) -> str:
    masked = MaskedText(masking)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(masked.take(piece) for piece in pieces) + masked.finish()


def shown_signs(told: str) -> str:
    """What is shown of it, without what stands around a value and joins lines."""
    for sign in (REDACTED, "\\n", "\r", "\n", "%3D", "="):
        told = told.replace(sign, "")
    return told


def ways(text: str) -> list[Callable[[Masker], str]]:
    """To mask it: at once, and in pieces."""
    sizes = (1, 3, 7, 64, 4096) if len(text) < 200 else (5, 997)[len(text) > 2000 :]
    return [
        lambda masking: masking.whole(text),
        *(lambda masking, size=size: in_pieces(masking, text, size) for size in sizes),
    ]


@pytest.mark.long
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:8])
@pytest.mark.parametrize("base", BASES)
def test_a_value_is_masked_in_base64_wherever_it_stands_in_what_was_encoded(
    base: str, value: str
) -> None:
    masking = Masker([value])
    for before, behind in AROUND[:: 4 if len(value) > 100 else 1]:
        text = BASES[base](f"{before}{value}{behind}".encode()).decode()
        # A sign at each end may belong to what stands there, and lines are told as they end.
        few = 4 + len(before) + len(behind) + (4 if value is PEM else 0)
        few += 7 if "lines" in base else 0
        for way in ways(f"<{text}>"):
            told = way(masking)
            assert REDACTED in told
            assert len(shown_signs(told)) <= few + 2, (told, text)
    for way in ways(f"<{BASES[base](value.strip().encode()).decode()}>"):
        assert len(shown_signs(way(masking))) <= 2 + (7 if "lines" in base else 0)


@pytest.mark.long
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:8])
@pytest.mark.parametrize("url", URLS)
def test_a_value_is_masked_as_part_of_a_url(url: str, value: str) -> None:
    masking = Masker([value])
    text = f"https://x/?q=100%&key={URLS[url](value)}&z=%20"
    for way in ways(text):
        told = way(masking).replace("%0A", "").replace("%0a", "").replace("\n", "")
        # A long value is told of piece by piece.
        first, behind = told.index(REDACTED), told.rindex(REDACTED) + len(REDACTED)
        assert set(told[first:behind].split(REDACTED)) == {""}
        told = told[:first] + REDACTED + told[behind:]
        assert told == "https://x/?q=100%&key=[redacted]&z=%20"


def test_a_line_of_a_value_is_masked_for_itself() -> None:
    masking = Masker(["somebody\nmy-secret-of-all"])
    authorization = base64.b64encode(b"user:my-secret-of-all").decode()
    assert masking.whole(authorization)[:7] == authorization[:7]
    assert masking.whole(authorization)[7:] == "[redacted]"
    assert masking.whole(quote("<my-secret-of-all>")) == "%3C[redacted]%3E"


def test_json_is_masked_when_it_is_encoded() -> None:
    value = 'quote"of the secret\nand é'
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        for text in (quote(written, safe=""), base64.b64encode(written.encode()).decode()):
            told = Masker([value]).whole(text)
            assert REDACTED in told
            assert len(told) <= len(REDACTED) + 6


def test_what_is_too_short_to_be_masked_is_not_masked_when_it_is_encoded() -> None:
    text = base64.b64encode(b"1234567").decode() + " %31%32%33%34%35%36%37"
    assert Masker(["1234567"]).whole(text) == text


def test_what_was_cut_within_an_encoding_is_masked() -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    assert Masker([KEY]).whole(f"key={encoded[:12]}") == "key=[redacted]"
    assert Masker([KEY]).whole(f"key={encoded[:12]}\n") == "key=[redacted]\n"
    assert Masker([KEY]).whole(f"key={encoded[:7]}") == f"key={encoded[:7]}"
    assert Masker([KEY]).whole("key=sk-canary%2F01%3") == "key=[redacted]"


def test_a_line_is_told_when_it_is_printed_though_it_ends_in_what_may_begin_a_value() -> None:
    masked = MaskedText(Masker([KEY]))
    encoded = base64.b64encode(KEY.encode()).decode()
    for text in (f"to {encoded[:1]}\n", f"to {encoded[:7]}\r\n", "100% \n"):
        assert masked.take(text) == text
    assert masked.take(f"to {encoded[:7]}\n") == f"to {encoded[:7]}\n"
    told = masked.take(f"{encoded[7:20]}\n") + masked.take(f"{encoded[20:]}\nmore\n")
    assert told == "[redacted]\nmore\n"


def test_lines_far_apart_are_no_value() -> None:
    encoded = base64.b64encode(KEY.encode()).decode()
    text = f"{encoded[:10]}\n\n\n\n\n\n{encoded[10:]}"
    assert Masker([KEY]).whole(text) == text


def test_a_sign_that_is_cut_in_two_is_waited_for_and_no_longer_than_it_may_be_one() -> None:
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
def test_no_encoded_value_survives_in_whatever_pieces_it_comes(
    known: list[str], before: bytes, behind: bytes, base: str, size: int
) -> None:
    masking = Masker(known)
    for one in known:
        content = one.strip()
        if len(content) < 8 or len(content.splitlines()) > 1:
            continue
        text = BASES[base](before + content.encode() + behind).decode()
        told = shown_signs(in_pieces(masking, f" {text} ", size))
        # What stands around it, a sign at each end, and few signs before the end of a line.
        around = (len(before) + len(behind)) * 4 / 3 * (3 if "URL" in base else 1)
        assert len(told) <= around + 2 + 4 + 7, (told, text)


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
def test_it_takes_its_time_from_the_length_of_the_text_alone(text: str) -> None:
    masking = Masker([LONG, "A" * 8000, *(f"value-number-{number}" for number in range(30)), PEM])
    began = time.monotonic()
    masked = MaskedText(masking)
    for _ in range(4):
        masked.take(text)
    masked.finish()
    once = time.monotonic() - began
    assert once < 6


def test_what_waits_is_bounded_though_it_comes_little_by_little() -> None:
    masked = MaskedText(Masker([LONG]))
    text = "\r\n".join(base64.b64encode(LONG.encode()).decode()[:10_000])
    told, waiting = 0, list[int]()
    for at in range(0, len(text), 100):
        told += len(masked.take(text[at : at + 100]))
        waiting.append(len(masked._text))
    assert 1000 < max(waiting) < 10_000 < len(text)
    assert told > 0


def test_json_around_it_changes_nothing() -> None:
    encoded = base64.b64encode(f"<{KEY}>".encode()).decode()
    told = json.loads(Masker([KEY]).whole(json.dumps({"k": encoded, "u": quote(KEY, safe="")})))
    assert REDACTED in told["k"]
    assert told["u"] == REDACTED
