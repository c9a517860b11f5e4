"""The strings and the unquoted keys of JSON5."""

import re

_RUN = {'"': re.compile(r'[^"\\\n\r]*'), "'": re.compile(r"[^'\\\n\r]*")}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_CONTINUATION = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


class StringError(Exception):
    """A string that is none; `offset` counts characters of the whole text from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message, self.offset = message, offset


def read_string(text: str, start: int) -> tuple[str, int]:
    """The string whose quote stands at `start`, and the offset behind it; StringError."""
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
            # The end of the text or of the line: the quote that opened is the likely mistake.
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
            wanted = "two" if sign == "x" else "four"
            raise StringError(f"\\{sign} is followed by {wanted} hexadecimal digits", at)
        return chr(int(digits.group(), 16)), digits.end()
    if broken := _CONTINUATION.match(text, at + 1):
        return "", broken.end()
    if "0" <= sign <= "9":
        if sign == "0" and not "0" <= text[at + 2 : at + 3] <= "9":
            return "\0", at + 2
        raise StringError("a backslash before a digit has no meaning; write \\\\", at)
    return sign, at + 2


def _join_surrogates(text: str, start: int) -> str:
    """Joins surrogate pairs written as two escapes; refuses halves, and NUL."""
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
    """The key that an unquoted word stands for, or None when it must be quoted."""
    name = _UNICODE_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), word)
    # Two signs that scripts allow in names and Python does not.
    plain = name.replace("$", "_")
    plain = plain[:1] + plain[1:].replace("\u200c", "").replace("\u200d", "")
    return name if plain.isidentifier() else None
