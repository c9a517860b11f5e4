"""Causes of failures: the line of an error text that names the cause, and a key of equal causes."""

import re

LINE_CHARACTERS_MAX = 300
CAUSE_CHARACTERS_MAX = 160
NO_ERROR = "no error text"
_TRACEBACK = "Traceback (most recent call last):"
_PASSES_MAX = 8
_PLACEHOLDERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s'\"`<>]+"), "<url>"),
    (re.compile(r"(?<![\w>])(['\"`])(?:(?!\1).){0,300}\1(?!\w)"), "<text>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)?"),
        "<time>",
    ),
    (re.compile(r"(?<![\w<>/.~])(?:~|\.{1,2})?(?:/[\w.@%+-]+)+/?"), "<path>"),
    (re.compile(r"\b[a-zA-Z]:\\[^\s'\"<>]+"), "<path>"),
    (re.compile(r"\b[\w-]+(?:/[\w.-]+)*/[\w-]+\.[A-Za-z]\w{0,7}\b"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "<id>"),
)
"""Patterns of variable parts of a cause, in order, with their placeholders."""
_NUMBER = re.compile(r"(?:(?<!\w)[+-])?\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"\w{7,}")
_HEX = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]+")
_ID_CHARACTERS_MIN = 10
_ID_DIGITS_MIN = 3


def error_line(text: str) -> str:
    """Return the line of an error text that names its cause, or "" if the text is blank.

    This is the last non-empty line. In a Python traceback, it is the line of the exception, which
    notes and further lines of its message may follow.
    """
    _, traceback, tail = text.rpartition(_TRACEBACK)
    lines = [line.rstrip() for line in tail.splitlines() if line.strip()]
    if traceback:
        lines = [line for line in lines if not line.startswith((" ", "\t"))][:1] or lines
    return " ".join(lines[-1].split())[:LINE_CHARACTERS_MAX] if lines else ""


def error_cause(line: str) -> str:
    """Return the cause that a line names: equal for lines that differ only in numbers, ids,
    instants, quoted texts, paths and URLs.

    The cause of a cause is the cause itself.
    """
    cause = line[:LINE_CHARACTERS_MAX]
    for _ in range(_PASSES_MAX):
        before = cause
        for pattern, placeholder in _PLACEHOLDERS:
            cause = pattern.sub(placeholder, cause)
        cause = _NUMBER.sub("<n>", _WORD.sub(_without_id, cause))
        cause = _cut(" ".join(cause.split()))
        if cause == before:
            break
    return cause or NO_ERROR


def _without_id(match: re.Match[str]) -> str:
    """Return `<id>` if a word looks like one: hexadecimal, or letters among several digits."""
    word = match[0]
    digits = sum(character.isdigit() for character in word)
    if not 0 < digits < len(word) or word.endswith(("Error", "Exception")):
        return word
    is_mixed = len(word) >= _ID_CHARACTERS_MIN and digits >= _ID_DIGITS_MIN
    return "<id>" if is_mixed or _HEX.fullmatch(word) else word


def _cut(cause: str) -> str:
    if len(cause) <= CAUSE_CHARACTERS_MAX:
        return cause
    return re.sub(r"<[a-z]{0,4}$", "", cause[:CAUSE_CHARACTERS_MAX]).rstrip()
