"""JSON5 parser that returns values with their positions in the text.

A parser of our own, because the meaning of a configuration must not depend on defects of a library
(misread escapes, split surrogate pairs, a key such as `e2e` that fails), and because each mistake
is reported with its line.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

_RUN = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_CONTINUATION = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class StringError(Exception):
    """Invalid string literal; `offset` counts characters of the whole text from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


def read_string(text: str, start: int) -> tuple[str, int]:
    """Parse the string literal whose quote is at `start`.

    Returns:
        The string, and the offset after its closing quote.

    Raises:
        StringError: The literal is invalid.
    """
    quote = text[start]
    run, parts, at = _RUN[quote], [], start + 1
    while True:
        plain = run.match(text, at)
        if plain is not None and plain.end() > at:
            parts.append(plain.group())
            at = plain.end()
        sign = text[at : at + 1]
        if sign == quote:
            return _join_surrogates("".join(parts), start), at + 1
        if sign != "\\":
            # At the end of the line or text, the opening quote is the likely mistake.
            raise StringError(f"the string is not closed by {quote} on its line", start)
        piece, at = _read_escape(text, at)
        parts.append(piece)


def _read_escape(text: str, at: int) -> tuple[str, int]:
    sign = text[at + 1 : at + 2]
    if sign in _ESCAPES:
        return _ESCAPES[sign], at + 2
    if sign in _HEX:
        digits = _HEX[sign].match(text, at + 2)
        if digits is None:
            count = "two" if sign == "x" else "four"
            raise StringError(f"\\{sign} is followed by {count} hexadecimal digits", at)
        return chr(int(digits.group(), 16)), digits.end()
    if broken := _CONTINUATION.match(text, at + 1):
        return "", broken.end()
    if "0" <= sign <= "9":
        if sign == "0" and not "0" <= text[at + 2 : at + 3] <= "9":
            return "\0", at + 2
        raise StringError("a backslash before a digit has no meaning; write \\\\", at)
    return sign, at + 2


def _join_surrogates(text: str, start: int) -> str:
    """Join surrogate pairs written as two escapes. Refuse lone surrogates and NUL."""
    if "\0" in text:
        raise StringError("the string contains NUL", start)
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise StringError("the string contains half of a surrogate pair", start) from None
    return text


def decode_identifier(word: str) -> str | None:
    """Return the key that an unquoted word denotes, or None if the key needs quotes."""
    name = _UNICODE_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), word)
    # JavaScript allows `$` and two joiners in names; Python does not.
    plain = name.replace("$", "_")
    plain = plain[:1] + plain[1:].replace("\u200c", "").replace("\u200d", "")
    return name if plain.isidentifier() else None


NESTING_MAX = 100
_BLANK = re.compile(
    r"(?:[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+"
    r"|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*",
    re.DOTALL,
)
_WORD = re.compile(r"[^\s{}\[\],:\"'/\ufeff]+")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_HEXADECIMAL = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]{1,16})")
_DECIMAL = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_LITERALS = {"true": True, "false": False, "null": None}
_EXACT_MAX = 2**53


class Json5Error(Exception):
    """Text that is not JSON5; `offset` counts characters from 0."""

    def __init__(self, message: str, offset: int, pointer: str = "") -> None:
        super().__init__(message)
        self.message, self.offset, self.pointer = message, offset, pointer


@dataclass(frozen=True)
class ValueOffsets:
    """Character offsets of a value and of its key; the same if it has no key."""

    value: int
    key: int


@dataclass(frozen=True)
class Document:
    """Parsed values and their positions.

    Attributes:
        values: The values.
        places: Offsets of each value by JSON pointer.
        repeated: Pointer and offset of each key that occurs twice in its object.
        text: The text.
    """

    values: Any
    places: dict[str, ValueOffsets]
    repeated: tuple[tuple[str, int], ...]
    text: str = field(repr=False)

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1. The column counts characters."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> list[int]:
        """Return the offsets of the line starts. Cached, because a text may have as many mistakes
        as words.
        """
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]


def read_json5(text: str) -> Document:
    """Parse a text.

    Raises:
        Json5Error: At the first syntax error, or where the nesting is too deep.
    """
    reader = _Reader(text)
    values = reader.whole()
    return Document(values, reader.places, tuple(reader.repeated), text)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[str, ValueOffsets] = {}
        self.repeated: list[tuple[str, int]] = []

    def whole(self) -> Any:
        self._skip_blank()
        if self.at == len(self.text):
            self._fail("is empty; the minimal configuration is {}")
        value = self._value("", self.at, 0)
        self._skip_blank()
        if self.at < len(self.text):
            self._fail("unexpected text after the end of the document")
        return value

    def _value(self, pointer: str, key_at: int, depth: int) -> Any:
        self.places[pointer] = ValueOffsets(self.at, key_at)
        sign = self.text[self.at : self.at + 1]
        if sign in ("{", "["):
            if depth == NESTING_MAX:
                self._fail(f"is nested deeper than {NESTING_MAX} levels", pointer=pointer)
            opened, self.at = self.at, self.at + 1
            inside = self._object if sign == "{" else self._array
            return inside(pointer, opened, depth + 1)
        if sign in ('"', "'"):
            return self._string(pointer)
        return self._word_value(pointer)

    def _object(self, pointer: str, opened: int, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self._closes("}", opened):
            key_at = self.at
            key = self._key(pointer)
            self._skip_blank()
            if self.text[self.at : self.at + 1] != ":":
                self._fail(f"expected : after the key {_printable_key(key)}")
            self.at += 1
            self._skip_blank()
            inner = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if key in members:
                self.repeated.append((inner, key_at))
            members[key] = self._value(inner, key_at, depth)
            self._comma_or("}", opened)
        return members

    def _array(self, pointer: str, opened: int, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._closes("]", opened):
            items.append(self._value(f"{pointer}/{len(items)}", self.at, depth))
            self._comma_or("]", opened)
        return items

    def _closes(self, sign: str, opened: int) -> bool:
        self._skip_blank()
        if self.at == len(self.text):
            self._fail(f"the {self.text[opened]} that opens here is never closed", opened)
        if self.text[self.at] != sign:
            return False
        self.at += 1
        return True

    def _comma_or(self, sign: str, opened: int) -> None:
        self._skip_blank()
        if self.at == len(self.text):
            self._fail(f"the {self.text[opened]} that opens here is never closed", opened)
        if self.text[self.at] == ",":
            self.at += 1
        elif self.text[self.at] != sign:
            self._fail(f"expected , or {sign}")

    def _key(self, pointer: str) -> str:
        if self.text[self.at] in "\"'":
            return self._string(pointer)
        word = _WORD.match(self.text, self.at)
        name = decode_identifier(word.group()) if word else None
        if word is None or name is None:
            self._fail("expected a key; put a key that is not a plain word in quotes")
        self.at = word.end()
        return name

    def _string(self, pointer: str) -> str:
        try:
            text, self.at = read_string(self.text, self.at)
        except StringError as failure:
            raise Json5Error(failure.message, failure.offset, pointer) from None
        return text

    def _word_value(self, pointer: str) -> Any:
        word = _WORD.match(self.text, self.at)
        if word is None:
            self._fail("expected a value", pointer=pointer)
        text = word.group()
        if text in _LITERALS:
            value: Any = _LITERALS[text]
        elif text.lstrip("+-") in ("NaN", "Infinity"):
            self._fail("NaN and Infinity are not allowed", pointer=pointer)
        else:
            value = self._number(text, pointer)
        self.at = word.end()
        return value

    def _number(self, text: str, pointer: str) -> int | float:
        if match := _HEXADECIMAL.fullmatch(text):
            number: int | float = int(match.group(1) + match.group(2), 16)
        elif _INTEGER.fullmatch(text) and len(text) <= 20:
            number = int(text)
        elif _DECIMAL.fullmatch(text):
            number = float(text)
        else:
            self._fail("expected a value; put texts in quotes", pointer=pointer)
        if number in (float("inf"), float("-inf")):
            self._fail("the number is too large", pointer=pointer)
        # To the author of a file, 8.0 and 8 are the same number.
        if isinstance(number, float) and number.is_integer() and abs(number) <= _EXACT_MAX:
            return int(number)
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            return float(number)
        return number

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        if self.text.startswith("/*", self.at):
            self._fail("the comment that begins here never ends")

    def _fail(self, message: str, offset: int | None = None, pointer: str = "") -> NoReturn:
        raise Json5Error(message, self.at if offset is None else offset, pointer)


def _printable_key(key: str) -> str:
    short = key if len(key) <= 40 else key[:40] + "…"
    return f'"{short}"' if short.isprintable() else ascii(short)
