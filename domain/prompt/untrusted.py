"""Delimiters for a child's results in prompts, which mark them as data, not instructions."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from domain.values.text import replace_unstorable, utf8_prefix

# Detection of disguised delimiters: other alphabets, widths and cases, invisible characters, gaps,
# and JSON escapes of these. A model reading a prompt goes by the shapes of the characters.


_ALIKE = str.maketrans(
    # Cyrillic, Greek, and other brackets; a double bracket counts as one.
    "\u0412\u0415\u0406\u0421\u0405\u0422\u041d"
    "\u0392\u0395\u0399\u039d\u03a4\u0397\u03f9"
    "\u2039\u203a\u00ab\u00bb\u3008\u3009\u300a\u300b\u27e8\u27e9\u27ea\u27eb"
    "\u226a\u226b\u22d8\u22d9\u276e\u276f\u2770\u2771\u29fc\u29fd\u02c2\u02c3",
    "BEICSTHBEINTHC<><><><><><><><><><><><>",
)
_UNSEEN = frozenset({"Cc", "Cf", "Me", "Mn", "Zl", "Zp", "Zs"})
_GAP = r"(?:[\s\x00-\x1f\x7f]|\\U[0-9A-F]{4}|\\[BFNRT])"
_BETWEEN_WORDS = rf"(?:{_GAP}|[_-]){{0,32}}"


def _spaced(word: str) -> str:
    return f"{_GAP}{{0,16}}".join(word)


_WORDS = re.compile(
    _BETWEEN_WORDS.join(
        (f"({_spaced('BEGIN')}|{_spaced('END')})", *map(_spaced, ("UNTRUSTED", "CHILD", "RESULT")))
    )
)
_OPENING = re.compile(rf"<(?:{_GAP}|[</])*\Z")
_CLOSING = re.compile(rf"(?:{_GAP}{{0,16}}>)+")
_BRACKETS_CHARACTERS_MAX = 64


class DisguisedMark(NamedTuple):
    """Range `[start, end)` of a text that a reader could take for a delimiter."""

    start: int
    end: int
    begins: bool


def disguised_marks(text: str) -> Iterator[DisguisedMark]:
    """Yield the possible delimiters in a text in order, including undisguised ones.

    Closing brackets are optional, because the text may have been cut there.
    """
    shapes = text.upper() if text.isascii() else "".join(map(_shape, text))
    done = 0
    for words in _WORDS.finditer(shapes):
        before = max(done, words.start() - _BRACKETS_CHARACTERS_MAX)
        opening = _OPENING.search(shapes[before : words.start()])
        if opening is None:
            continue
        rest = shapes[words.end() : words.end() + _BRACKETS_CHARACTERS_MAX]
        closing = _CLOSING.match(rest)
        done = words.end() + (closing.end() if closing else 0)
        yield DisguisedMark(before + opening.start(), done, words[1].startswith("B"))


@lru_cache(maxsize=4096)
def _shape(char: str) -> str:
    """Return the plain character that this one looks like, or a blank if it is invisible."""
    if unicodedata.category(char) in _UNSEEN:
        return " "
    plain = unicodedata.normalize("NFKC", char).upper().translate(_ALIKE)
    if unicodedata.category(char) in ("Pd", "Pc"):
        return "-"
    return plain if len(plain) == 1 else char


RESULT_BYTES_MAX = 102_400
BEGIN = "<<<BEGIN_UNTRUSTED_CHILD_RESULT>>>"
END = "<<<END_UNTRUSTED_CHILD_RESULT>>>"


def freeze_result(text: str) -> str:
    """Return the result as stored: trimmed, cut to 102,400 bytes with a notice if longer."""
    return cut_to_bytes(text, RESULT_BYTES_MAX, "frozen completion output exceeded 100KB")


def cut_to_bytes(text: str, bytes_max: int, why: str) -> str:
    """Trim the text and cut it to `bytes_max` UTF-8 bytes.

    A cut text ends with the notice `[truncated: <why> (<n>KB)]`, which counts toward the limit.
    `<n>` is the size before the cut.
    """
    plain = replace_unstorable(text.strip())
    size = len(plain.encode())
    if size <= bytes_max:
        return plain
    notice = f"\n\n[truncated: {why} ({(size + 512) // 1024}KB)]"
    return utf8_prefix(plain, bytes_max - len(notice.encode())) + notice


def without_delimiters(text: str) -> str:
    """Replace every delimiter in the text, however disguised, with a harmless form."""
    if text.isascii() and "<" not in text:
        return text
    pieces: list[str] = []
    at = 0
    for mark in disguised_marks(text):
        word = "BEGIN" if mark.begins else "END"
        pieces += [text[at : mark.start], f"[[{word}_UNTRUSTED_CHILD_RESULT]]"]
        at = mark.end
    return "".join([*pieces, text[at:]])


def delimit_result(text: str) -> str:
    """Enclose the text in delimiters that nothing in it can close."""
    return f"{BEGIN}\n{without_delimiters(replace_unstorable(text))}\n{END}"
