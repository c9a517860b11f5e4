"""Base64 is read strictly, within a limit."""

import base64
import string

from hypothesis import given
from hypothesis import strategies as st

from domain.values.base64 import decode_strict_base64, encoded_length_max

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
SPACES = " \t\r\n\f\v"


def by_hand(text: str) -> bytes | None:
    """Bit by bit, and so without any library: what `text` stands for when nothing limits it."""
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
def test_what_is_encoded_is_decoded_wherever_white_space_stands(
    content: bytes, data: st.DataObject
) -> None:
    signs = list(base64.b64encode(content).decode())
    spaced = "".join(sign + data.draw(st.sampled_from(["", *SPACES])) for sign in signs)
    assert decode_strict_base64(spaced, 60) == content


@given(st.text(ALPHABET[:6] + "+/=-_" + SPACES + "\0\u00a0é", max_size=14))
def test_any_other_text_is_what_it_is_by_hand(text: str) -> None:
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


def test_a_limit_needs_so_many_characters() -> None:
    for most in range(20):
        assert encoded_length_max(most) == len(base64.b64encode(bytes(most)))


def test_white_space_is_passed_over_up_to_twice_the_length_that_is_needed() -> None:
    encoded = base64.b64encode(bytes(1024)).decode()
    longest = encoded_length_max(1024)
    assert decode_strict_base64(encoded + " " * longest, 1024) == bytes(1024)
    assert decode_strict_base64(encoded + " " * (longest + 1), 1024) is None


def test_bits_that_no_byte_needs_are_passed_over() -> None:
    assert decode_strict_base64("YR==", 1) == decode_strict_base64("YQ==", 1) == b"a"
