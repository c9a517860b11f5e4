"""Base64 as attachments must have it: whole, of one alphabet, within a limit that holds before
anything is decoded."""

import base64
import re

_SPACES = str.maketrans("", "", " \t\r\n\f\v")
_ENCODED = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def encoded_length_max(bytes_max: int) -> int:
    """The characters of base64 that `bytes_max` bytes make, padding included."""
    return (bytes_max + 2) // 3 * 4


def decode_strict_base64(text: str, bytes_max: int) -> bytes | None:
    """The bytes that `text` stands for; None when it is not strict base64 or stands for more than
    `bytes_max`.

    ASCII white space is passed over wherever it stands. Without it the text must be a multiple of
    four characters and must not be empty, so that no base64 stands for no bytes. A text of more
    than twice the characters that the limit needs is not looked at, whatever it holds.
    """
    longest = encoded_length_max(bytes_max)
    if len(text) > 2 * longest:
        return None
    encoded = text.translate(_SPACES)
    if not encoded or len(encoded) % 4 or len(encoded) > longest:
        return None
    if _ENCODED.fullmatch(encoded) is None:
        return None
    decoded = base64.b64decode(encoded)
    return decoded if len(decoded) <= bytes_max else None
