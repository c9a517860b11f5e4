"""How a value looks in base64 and in a URL, once the text is folded. Pure."""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable

# A text as it is looked through for what was encoded. Pure.
#
# Signs that a URL writes as `%41` are what they stand for, ends of lines that an encoder puts
# between two signs are gone, written out as `\n` or not, and both alphabets of base64 are one.


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
LINES_MAX = 20
"""The lines of a value that has no more are looked for by themselves, too."""


NESTED_MAX = 3
"""So many times JSON may stand in JSON: what a service answers is quoted by the log once more."""


FORM_CHARACTERS_MAX = 1024
"""What is longer is looked for piece by piece, so that no more than one waits to be told."""


def written_forms(text: str) -> Iterable[str]:
    """A text as it stands, and as JSON writes it: also JSON that stands in JSON as a text, and with
    the escaped slashes that some write. Few texts have more than one form."""
    forms = [text]
    for is_ascii in (True, False):
        for slash in ("/", "\\/"):
            form = text
            for _ in range(NESTED_MAX):
                form = json.dumps(form, ensure_ascii=is_ascii)[1:-1].replace("/", slash)
                forms.append(form)
    return tuple(dict.fromkeys(forms))


def encoded_forms(value: str, characters_min: int) -> Iterable[str]:
    """What stands in a folded text that holds the value, or JSON of it, in an encoding, so far as
    it is long enough. Blanks around the value are none of its own."""
    lines = value.strip().splitlines()
    parts = {value.strip(), *(line.strip() for line in lines if len(lines) <= LINES_MAX)}
    for part in {form for one in parts for form in written_forms(one)}:
        if len(part) < characters_min:
            continue
        content = _bytes_of(part)
        for whole in (*_url_forms(content), *_base64_forms(content)):
            yield from _segments(whole, characters_min)


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _url_forms(content: bytes) -> tuple[str, ...]:
    """Each byte as a sign, for a URL encodes bytes; a form writes blanks in its own way."""
    text = normalise_alphabet(remove_gaps(content.decode("latin-1")))
    return text, text.replace(" ", "+")


def _base64_forms(content: bytes) -> Iterable[str]:
    """The signs that are made of nothing but the value, for each number of bytes that may stand
    before it in its first group of three. At the end of all that was encoded there are more."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        bits = 8 * (before + len(content))
        first, behind = (0, 2, 3)[before], bits // 6
        signs = encoded.rstrip("=")
        yield encoded[first:behind]
        if len(signs) > behind:
            yield signs[first:]
            yield encoded[first:]


def _segments(form: str, characters_min: int) -> Iterable[str]:
    """One behind the other; the last is as long as the others."""
    if len(form) <= FORM_CHARACTERS_MAX:
        yield from [form] if len(form) >= characters_min else []
        return
    for at in range(0, len(form) - FORM_CHARACTERS_MAX, FORM_CHARACTERS_MAX):
        yield form[at : at + FORM_CHARACTERS_MAX]
    yield form[-FORM_CHARACTERS_MAX:]
