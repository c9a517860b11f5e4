"""Text from outside, made fit to be kept and shown: storable, on one line, cut to a limit."""

import re
import unicodedata
from fnmatch import fnmatchcase

SHOWN_CHARACTERS_MAX = 100
ELLIPSIS = "…"
REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BREAKS = re.compile("\n+")
_ZERO_WIDTH_JOINER = "\u200d"

# Marks by what they do and not by their category.
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")

# Signs that belong to what follows them, most of them number signs and repha.
_PREPENDED = frozenset(
    "\u1cf5\u1cf6\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84"
    "\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02\U000113d1"
)

# The combining class of what joins two letters of an Indic script to one sign.
_VIRAMA = 9

# Signs that reorder or hide what a reader sees; the joiners of scripts and emoji may stay.
_DECEIVING = frozenset("\u200b\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff")
_DECEIVING_SPANS = (("\u202a", "\u202e"), ("\u2066", "\u206f"), ("\ufff9", "\ufffb"))


def replace_unstorable(text: str) -> str:
    """The text with NUL and lone surrogates, which no UTF-8 store takes, replaced by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return _UNSTORABLE.sub(REPLACEMENT, text)


def fits(text: str, pattern: str) -> bool:
    """Whether a pattern in which `*` stands for anything fits the whole text. Nothing else is
    special in it: `?` and `[` stand for themselves."""
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def single_line(text: str, *, characters_max: int) -> str:
    """The text on one line of at most `characters_max` characters, an ellipsis where it was cut.

    A run of control characters and line ends becomes one space; signs that reorder or hide text
    are left out.
    """
    if len(text) <= characters_max and text.isprintable():
        return text.strip()
    # Only so much is looked at that a huge value costs no more than its limit.
    looked_at = text[: max(0, characters_max) * 4 + 64]
    line = _BREAKS.sub(" ", _printable(looked_at)).strip()
    if len(line) <= characters_max and len(looked_at) == len(text):
        return line
    if characters_max < 1:
        return ""
    return line[: whole_characters(line, characters_max - 1)].rstrip() + ELLIPSIS


def whole_characters(text: str, limit: int) -> int:
    """The greatest index <= `limit` (code points) where a cut splits nothing seen as one sign.

    Combining marks, variation selectors, joined emoji, flags, Hangul syllables, conjuncts of Indic
    scripts, prepended number signs and CR LF count as one with what they belong to.
    """
    index = max(0, min(limit, len(text)))
    while 0 < index < len(text) and _splits_character(text, index):
        index -= 1
    return index


def utf8_prefix(text: str, bytes_max: int) -> str:
    """The longest prefix of `text` within `bytes_max` bytes of UTF-8 that splits no character."""
    encoded = replace_unstorable(text).encode()
    if len(encoded) <= bytes_max:
        return replace_unstorable(text)
    fitting = encoded[: max(0, bytes_max)].decode(errors="ignore")
    return fitting[: whole_characters(replace_unstorable(text), len(fitting))]


def _printable(text: str) -> str:
    # What is printable to Python holds none of the signs below.
    return text if text.isprintable() else "".join(map(_printable_sign, text))


def _printable_sign(sign: str) -> str:
    if sign in _DECEIVING or any(first <= sign <= last for first, last in _DECEIVING_SPANS):
        return ""
    if unicodedata.category(sign) in ("Cc", "Zl", "Zp"):
        return "\n"
    return REPLACEMENT if _UNSTORABLE.match(sign) else sign


def _splits_character(text: str, index: int) -> bool:
    """Whether a boundary before `text[index]` would split what belongs together."""
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


def _extends(sign: str) -> bool:
    return (
        sign in _EXTENDING
        or unicodedata.category(sign).startswith("M")
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
        or "\U000e0020" <= sign <= "\U000e007f"
    )


def _is_letter(sign: str) -> bool:
    """One of a script without capitals."""
    return unicodedata.category(sign) == "Lo"


def _is_in_conjunct(text: str, index: int) -> bool:
    """Whether a mark before the letter at `index` joins it to what is before."""
    while index > 0 and _extends(text[index - 1]):
        index -= 1
        if unicodedata.combining(text[index]) == _VIRAMA:
            return True
    return False


def _is_flag_half(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _flag_halves_before(text: str, index: int) -> int:
    start = index
    while start > 0 and _is_flag_half(text[start - 1]):
        start -= 1
    return index - start


def _is_hangul_head(sign: str) -> bool:
    return "\u1100" <= sign <= "\u115f" or "\ua960" <= sign <= "\ua97c"


def _is_hangul_syllable(sign: str) -> bool:
    return "\uac00" <= sign <= "\ud7a3"


def _is_hangul_tail(sign: str) -> bool:
    return "\u1160" <= sign <= "\u11ff" or "\ud7b0" <= sign <= "\ud7fb"


def quote_name(value: object) -> str:
    """A name in quotation marks, on one line and cut to a limit."""
    return f'"{single_line(str(value), characters_max=SHOWN_CHARACTERS_MAX)}"'
