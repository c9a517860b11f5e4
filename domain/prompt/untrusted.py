"""What a child said, set apart wherever it enters a prompt: it is data, it gives no orders."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from domain.values.text import replace_unstorable, utf8_prefix

# The marks around untrusted text, found in whatever disguise: other alphabets, widths and cases,
# signs nobody sees, gaps, also as JSON writes them. Whoever reads a prompt looks at shapes.


_ALIKE = str.maketrans(
    # Cyrillic, Greek, and brackets of other kinds; a double one counts like one.
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
    """A stretch `[start, end)` of a text that somebody could take for a mark."""

    start: int
    end: int
    begins: bool


def disguised_marks(text: str) -> Iterator[DisguisedMark]:
    """The marks in a text in their order, the plain ones among them; without closing brackets,
    too, for a text may have been cut there."""
    shapes = text.upper() if text.isascii() else "".join(map(_shape, text))
    done = 0
    for words in _WORDS.finditer(shapes):
        before = max(done, words.start() - _BRACKETS_CHARACTERS_MAX)
        opening = _OPENING.search(shapes[before : words.start()])
        if opening is None:
            continue
        behind = shapes[words.end() : words.end() + _BRACKETS_CHARACTERS_MAX]
        closing = _CLOSING.match(behind)
        done = words.end() + (closing.end() if closing else 0)
        yield DisguisedMark(before + opening.start(), done, words[1].startswith("B"))


@lru_cache(maxsize=4096)
def _shape(sign: str) -> str:
    """One sign that looks like this one; a blank for what is not seen."""
    if unicodedata.category(sign) in _UNSEEN:
        return " "
    plain = unicodedata.normalize("NFKC", sign).upper().translate(_ALIKE)
    if unicodedata.category(sign) in ("Pd", "Pc"):
        return "-"
    return plain if len(plain) == 1 else sign


RESULT_BYTES_MAX = 102_400
BEGIN = "<<<BEGIN_UNTRUSTED_CHILD_RESULT>>>"
END = "<<<END_UNTRUSTED_CHILD_RESULT>>>"


def freeze_result(text: str) -> str:
    """The result as it is kept: trimmed, at most 102 400 bytes, with a notice when it was cut."""
    return cut_to_bytes(text, RESULT_BYTES_MAX, "frozen completion output exceeded 100KB")


def cut_to_bytes(text: str, bytes_max: int, why: str) -> str:
    """The trimmed text in `bytes_max` bytes, the notice `[truncated: <why> (<n>KB)]` included."""
    plain = replace_unstorable(text.strip())
    size = len(plain.encode())
    if size <= bytes_max:
        return plain
    notice = f"\n\n[truncated: {why} ({(size + 512) // 1024}KB)]"
    return utf8_prefix(plain, bytes_max - len(notice.encode())) + notice


def without_delimiters(text: str) -> str:
    """The text with every delimiter in it, however disguised, made harmless."""
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
    """The text between delimiters that nothing in it can close."""
    return f"{BEGIN}\n{without_delimiters(replace_unstorable(text))}\n{END}"
