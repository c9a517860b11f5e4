"""Encoded forms of a value: base64 and URL encoding. Pure."""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable

GAP_CHARACTERS_MAX = 4
"""Maximum length of a line end, literal or escaped. Longer runs are kept as one line end."""


CHARACTERS_MAX = 3 + GAP_CHARACTERS_MAX
"""Maximum characters of a text per character of the folded text, including a gap after it."""


_TOKEN = re.compile(r"%[0-9A-Fa-f]{2}|(?:[\r\n]|\\[rn])+")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_HALF = re.compile(r"(?:%[0-9A-Fa-f]?|\\)\Z")
_LONG_GAP = "\n"
_SEPARATE = "\\n", "\\r", "\n", "\r"


class FoldedText:
    r"""A text normalized for the search of encoded values.

    `%41` becomes the character that it encodes. Line ends that an encoder inserts are removed,
    whether literal or written as `\n`. Both alphabets of base64 become one.

    Attributes:
        text: The folded text after `since`, without a trailing piece that may be half of an encoded
            character.
        half_at: Offset of that piece in the plain text.
    """

    def __init__(self, plain: str, since: int = 0) -> None:
        self._plain = plain
        half = _HALF.search(plain, max(since, len(plain) - 2))
        self.half_at = half.start() if half else len(plain)
        pieces: list[str] = []
        # End offsets of the tokens, in the plain and in the folded text.
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
        """Return True if a line end follows the last character."""
        return bool(self.text) and self.end(len(self.text)) < self.half_at

    def start(self, index: int) -> int:
        """Return the offset in the plain text at which a folded character begins."""
        known = bisect_right(self._folded_ends, index) - 1
        return self._ends[known] + index - self._folded_ends[known]

    def end(self, index: int) -> int:
        """Return the offset in the plain text at which the character before `index` ends."""
        start = self.start(index - 1)
        return start + (3 if _ENCODED.match(self._plain, start) else 1)


def fold_text(plain: str) -> str:
    """Fold a text without offsets. Faster than `FoldedText`; every match there is a match here."""
    for separate in _SEPARATE:
        plain = plain.replace(separate, "")
    return normalise_alphabet(_ENCODED.sub(_sign_of, plain) if "%" in plain else plain)


def normalise_alphabet(text: str) -> str:
    """Replace the URL-safe characters of base64 by the standard ones."""
    return text.replace("-", "+").replace("_", "/")


def remove_gaps(text: str) -> str:
    """Remove all line ends."""
    return text.replace("\r", "").replace("\n", "")


def _sign_of(encoded: re.Match[str]) -> str:
    return _SIGNS[encoded[0][1:].lower()]


def _folded_token(token: str) -> str:
    if token[0] == "%":
        return _SIGNS[token[1:].lower()]
    return "" if len(token) <= GAP_CHARACTERS_MAX else _LONG_GAP


_SIGNS = {f"{byte:02x}": remove_gaps(chr(byte)) for byte in range(256)}
LINES_MAX = 20
"""The lines of a value are also searched one by one if there are at most this many."""


NESTED_MAX = 3
"""Maximum nesting of JSON in JSON: an answer of a service is often quoted by a log once more."""


FORM_CHARACTERS_MAX = 1024
"""Longer forms are searched in pieces, so that at most one piece of output is held back."""


def written_forms(text: str) -> Iterable[str]:
    """Return a text as it is, and as JSON writes it: nested in JSON, and with escaped slashes.

    Few texts have more than one form.
    """
    forms = [text]
    for is_ascii in (True, False):
        for slash in ("/", "\\/"):
            form = text
            for _ in range(NESTED_MAX):
                form = json.dumps(form, ensure_ascii=is_ascii)[1:-1].replace("/", slash)
                forms.append(form)
    return tuple(dict.fromkeys(forms))


def encoded_forms(value: str, characters_min: int) -> Iterable[str]:
    """Return the strings that a folded text contains if it contains the encoded value.

    Strings shorter than `characters_min` are left out. Blanks around the value are ignored.
    """
    lines = value.strip().splitlines()
    parts = {value.strip(), *(line.strip() for line in lines if len(lines) <= LINES_MAX)}
    for part in {form for plain in parts for form in written_forms(plain)}:
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
    """Return the URL-encoded forms: byte by byte, and with `+` for blanks as in forms."""
    text = normalise_alphabet(remove_gaps(content.decode("latin-1")))
    return text, text.replace(" ", "+")


def _base64_forms(content: bytes) -> Iterable[str]:
    """Return the base64 characters that depend only on the value.

    There is one string for each number of bytes that may precede the value in its first group of
    three. If the value is at the end of the encoded data, more characters are known.
    """
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + content).decode()
        bits = 8 * (before + len(content))
        first, end = (0, 2, 3)[before], bits // 6
        signs = encoded.rstrip("=")
        yield encoded[first:end]
        if len(signs) > end:
            yield signs[first:]
            yield encoded[first:]


def _segments(form: str, characters_min: int) -> Iterable[str]:
    """Split a form into pieces of the maximum length; the last one overlaps to be as long as the
    others."""
    if len(form) <= FORM_CHARACTERS_MAX:
        yield from [form] if len(form) >= characters_min else []
        return
    for at in range(0, len(form) - FORM_CHARACTERS_MAX, FORM_CHARACTERS_MAX):
        yield form[at : at + FORM_CHARACTERS_MAX]
    yield form[-FORM_CHARACTERS_MAX:]
