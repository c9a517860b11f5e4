"""A text as it is looked through for what was encoded. Pure.

Signs that a URL writes as `%41` are what they stand for, ends of lines that an encoder puts between
two signs are gone, written out as `\\n` or not, and both alphabets of base64 are one.
"""

import re
from bisect import bisect_right

GAP_CHARACTERS_MAX = 4
"""An end of a line is no longer, as it stands or written out; longer ones stay as one."""

CHARACTERS_MAX = 3 + GAP_CHARACTERS_MAX
"""So many characters of a text are at most one of the folded one, with what is behind it."""

_TOKEN = re.compile(r"%[0-9A-Fa-f]{2}|(?:[\r\n]|\\[rn])+")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_HALF = re.compile(r"(?:%[0-9A-Fa-f]?|\\)\Z")
_LONG_GAP = "\n"
_SEPARATE = "\\n", "\\r", "\n", "\r"


class FoldedText:
    """`text` is what is behind `since`, folded, without what is at the end and may be half of an
    encoded sign: `half_at` is where that is in the text as it stands."""

    def __init__(self, plain: str, since: int = 0) -> None:
        self._plain = plain
        half = _HALF.search(plain, max(since, len(plain) - 2))
        self.half_at = half.start() if half else len(plain)
        pieces: list[str] = []
        # Where a token ends, and where that is in the folded text.
        self._ends, self._folded_ends = [since], [0]
        at, folded = since, 0
        for token in _TOKEN.finditer(plain, since, self.half_at):
            sign = _folded_token(token[0])
            pieces += (plain[at : token.start()], sign)
            folded += token.start() - at + len(sign)
            at = token.end()
            self._ends.append(at)
            self._folded_ends.append(folded)
        pieces.append(plain[at : self.half_at])
        self.text = normalise_alphabet("".join(pieces))

    @property
    def ends_in_gap(self) -> bool:
        """Whether an end of a line is behind its last sign."""
        return bool(self.text) and self.end(len(self.text)) < self.half_at

    def start(self, index: int) -> int:
        """Where a sign of the folded text begins in the text as it stands."""
        known = bisect_right(self._folded_ends, index) - 1
        return self._ends[known] + index - self._folded_ends[known]

    def end(self, index: int) -> int:
        """Where the sign before this one ends there."""
        start = self.start(index - 1)
        return start + (3 if _ENCODED.match(self._plain, start) else 1)


def fold_text(plain: str) -> str:
    """All that stands together in the folded text, fast: where it stands is not known."""
    for separate in _SEPARATE:
        plain = plain.replace(separate, "")
    return normalise_alphabet(_ENCODED.sub(_sign_of, plain) if "%" in plain else plain)


def normalise_alphabet(text: str) -> str:
    """The signs of base64 that are others in URLs, as they are elsewhere."""
    return text.replace("-", "+").replace("_", "/")


def remove_gaps(text: str) -> str:
    """A text as it is when all ends of lines in it are gone."""
    return text.replace("\r", "").replace("\n", "")


def _sign_of(encoded: re.Match[str]) -> str:
    return _SIGNS[encoded[0][1:].lower()]


def _folded_token(token: str) -> str:
    if token[0] == "%":
        return _SIGNS[token[1:].lower()]
    return "" if len(token) <= GAP_CHARACTERS_MAX else _LONG_GAP


_SIGNS = {f"{byte:02x}": remove_gaps(chr(byte)) for byte in range(256)}
