"""Strict base64 decoding for attachments: one alphabet, complete padding, size checked before
decoding.
"""

import base64
import re

_SPACES = str.maketrans("", "", " \t\r\n\f\v")
_ENCODED = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def encoded_length_max(bytes_max: int) -> int:
    """Return the length in base64 characters of `bytes_max` bytes, padding included."""
    return (bytes_max + 2) // 3 * 4


def decode_strict_base64(text: str, bytes_max: int) -> bytes | None:
    """Decode strict base64 of at most `bytes_max` bytes.

    ASCII whitespace is ignored anywhere. The rest must be non-empty and a multiple of four
    characters long, so empty content has no encoding. To bound the work, text longer than twice the
    encoded limit is rejected unread.

    Returns:
        The decoded bytes, or None if the text is not strict base64 or exceeds `bytes_max`.
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
