"""Texts of others made safe to print.

A task, a label or a result may hold terminal control sequences, invisible signs that reorder a
line, or halves of characters. They are shown as the escapes they are (`\x1b`), never obeyed.
"""

import json
import unicodedata

CELL_CHARACTERS_MAX = 200
ELLIPSIS = "…"
_ALLOWED = frozenset("\n\t")
_JOINERS = frozenset("\u200c\u200d")  # join letters and emoji; they move nothing
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable_block(text: str) -> str:
    """The text over its lines: line ends and tabs stay, all other control signs are escaped."""
    unix = text.replace("\r\n", "\n")
    if unix.isascii() and unix.replace("\n", "").replace("\t", "").isprintable():
        return unix
    return "".join(sign if sign in _ALLOWED else _escape_unsafe(sign) for sign in unix)


def printable_line(text: object, characters_max: int = CELL_CHARACTERS_MAX) -> str:
    """The text on one line of at most `characters_max` characters, `…` where it was cut."""
    given = str(text)
    # What is cut away need not be walked through.
    start = " ".join(given[: 4 * characters_max].split())
    safe = "".join(map(_escape_unsafe, start))
    if len(safe) <= characters_max and len(given) <= 4 * characters_max:
        return safe
    return safe[: characters_max - 1] + ELLIPSIS


def text_of(value: object) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escape_unsafe(sign: str) -> str:
    if unicodedata.category(sign) not in _UNSAFE_CATEGORIES or sign in _JOINERS:
        return sign
    code = ord(sign)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
