"""Foreign text made safe to print.

A task, label or result may contain terminal control sequences, invisible characters that reorder a
line, or lone surrogates. They are printed as escapes such as `\x1b`.
"""

import json
import unicodedata

CELL_CHARACTERS_MAX = 200
ELLIPSIS = "…"
_ALLOWED = frozenset("\n\t")
_JOINERS = frozenset("\u200c\u200d")  # join letters and emoji; they move nothing
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable_block(text: str) -> str:
    """Escape control characters of a text, except for line ends and tabs."""
    unix = text.replace("\r\n", "\n")
    if unix.isascii() and unix.replace("\n", "").replace("\t", "").isprintable():
        return unix
    return "".join(char if char in _ALLOWED else _escape_unsafe(char) for char in unix)


def printable_line(text: object, characters_max: int = CELL_CHARACTERS_MAX) -> str:
    """Return a text on one line of at most `characters_max` characters, with `…` if it is cut."""
    given = str(text)
    # Text that is cut off is not processed.
    start = " ".join(given[: 4 * characters_max].split())
    safe = "".join(map(_escape_unsafe, start))
    if len(safe) <= characters_max and len(given) <= 4 * characters_max:
        return safe
    return safe[: characters_max - 1] + ELLIPSIS


def text_of(value: object) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _escape_unsafe(char: str) -> str:
    if unicodedata.category(char) not in _UNSAFE_CATEGORIES or char in _JOINERS:
        return char
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
