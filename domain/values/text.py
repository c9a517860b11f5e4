"""Sanitizing of external text for storage and display: storable, single-line, cut to a limit."""

import re
import unicodedata
from fnmatch import fnmatchcase

SHOWN_CHARACTERS_MAX = 100
ELLIPSIS = "…"
REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BREAKS = re.compile("\n+")
_ZERO_WIDTH_JOINER = "\u200d"

# Characters that extend the previous one although their category is not that of a mark.
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")

# Prepended characters, which belong to the next one: mostly number signs and repha.
_PREPENDED = frozenset(
    "\u1cf5\u1cf6\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84"
    "\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02\U000113d1"
)

# Combining class of viramas, which join two letters of an Indic script into a conjunct.
_VIRAMA = 9

# Characters that reorder or hide text. Joiners of scripts and emoji are allowed.
_DECEIVING = frozenset("\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff")
_DECEIVING_SPANS = (("\u202a", "\u202e"), ("\u2066", "\u206f"), ("\ufff9", "\ufffb"))


def replace_unstorable(text: str) -> str:
    """Replace NUL and lone surrogates, which UTF-8 stores reject, with U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


def fits(text: str, pattern: str) -> bool:
    """Return True if the pattern matches the whole text. `*` matches any text; `?` and `[` are
    literal.
    """
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def single_line(text: str, *, characters_max: int) -> str:
    """Return the text on one line of at most `characters_max` characters, with an ellipsis if cut.

    Each run of control characters and line breaks becomes one space. Characters that reorder or
    hide text are removed.
    """
    if len(text) <= characters_max and text.isprintable():
        return text.strip()
    # Bound the work: a huge value costs no more than its limit.
    prefix = text[: max(0, characters_max) * 4 + 64]
    line = _BREAKS.sub(" ", _printable(prefix)).strip()
    if len(line) <= characters_max and len(prefix) == len(text):
        return line
    if characters_max < 1:
        return ""
    return line[: whole_characters(line, characters_max - 1)].rstrip() + ELLIPSIS


def whole_characters(text: str, limit: int) -> int:
    """Return the largest index <= `limit` (code points) at which a cut splits no grapheme cluster.

    Combining marks, variation selectors, joined emoji, flags, Hangul syllables, Indic conjuncts,
    prepended number signs and CR LF stay together with the character that they belong to.
    """
    index = max(0, min(limit, len(text)))
    while 0 < index < len(text) and _splits_character(text, index):
        index -= 1
    return index


def utf8_prefix(text: str, bytes_max: int) -> str:
    """Return the longest prefix of at most `bytes_max` UTF-8 bytes that splits no character."""
    encoded = replace_unstorable(text).encode()
    if len(encoded) <= bytes_max:
        return replace_unstorable(text)
    fitting = encoded[: max(0, bytes_max)].decode(errors="ignore")
    return fitting[: whole_characters(replace_unstorable(text), len(fitting))]


def _printable(text: str) -> str:
    # Fast path: no character that Python considers printable needs replacing.
    return text if text.isprintable() else "".join(map(_printable_sign, text))


def _printable_sign(char: str) -> str:
    if char in _DECEIVING or any(first <= char <= last for first, last in _DECEIVING_SPANS):
        return ""
    if unicodedata.category(char) in ("Cc", "Zl", "Zp"):
        return "\n"
    return REPLACEMENT if _UNSTORABLE.match(char) else char


def _splits_character(text: str, index: int) -> bool:
    """Return True if a cut before `text[index]` would split a grapheme cluster."""
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return True
    if _extends(after) or before == _ZERO_WIDTH_JOINER:
        return True
    if before in _PREPENDED:
        return unicodedata.category(after) != "Cc"
    if _is_letter(after) and _is_in_conjunct(text, index):
        return True
    if _is_flag_half(before) and _is_flag_half(after):
        return _flag_halves_before(text, index) % 2 == 1
    if _is_hangul_head(before):
        return _is_hangul_head(after) or _is_hangul_syllable(after) or _is_hangul_tail(after)
    return _is_hangul_tail(after) and (_is_hangul_syllable(before) or _is_hangul_tail(before))


def _extends(char: str) -> bool:
    return (
        char in _EXTENDING
        or unicodedata.category(char).startswith("M")
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _is_letter(char: str) -> bool:
    """Return True for a letter of a script without case."""
    return unicodedata.category(char) == "Lo"


def _is_in_conjunct(text: str, index: int) -> bool:
    """Return True if a virama joins the letter at `index` to the text before it."""
    while index > 0 and _extends(text[index - 1]):
        index -= 1
        if unicodedata.combining(text[index]) == _VIRAMA:
            return True
    return False


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, index: int) -> int:
    start = index
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return index - start


def _is_hangul_head(char: str) -> bool:
    return "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c"


def _is_hangul_syllable(char: str) -> bool:
    return "\uac00" <= char <= "\ud7a3"


def _is_hangul_tail(char: str) -> bool:
    return "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def quote_name(value: object) -> str:
    """Return a name in double quotes, on one line and cut to 100 characters."""
    return f'"{single_line(str(value), characters_max=SHOWN_CHARACTERS_MAX)}"'
