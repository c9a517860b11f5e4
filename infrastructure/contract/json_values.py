"""Reading of untrusted JSON that can be stored.

It is limited in values and depth, has no repeated keys, and its texts have no NUL.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from domain.values.json_text import escape_pointer

DEPTH_MAX = 100
VALUES_MAX = 10_000

# An unterminated string matches up to the end, so that no text is scanned twice.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class MalformedJsonError(ValueError):
    """A text that is not JSON or cannot be stored. `errors` name the value by its JSON pointer."""

    def __init__(self, text: str, errors: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.errors = errors


class DuplicateKeyError(MalformedJsonError):
    """A JSON text in which an object has a key twice."""


def parse_json(raw: bytes, values_max: int = VALUES_MAX, *, subject: str) -> Any:
    """Return the value of a JSON text.

    Args:
        raw: The text in UTF-8.
        values_max: Maximum number of values.
        subject: Name of the text in errors.

    Raises:
        MalformedJsonError: The text is not JSON, or cannot be stored.
        DuplicateKeyError: An object has a key twice.
    """
    if _has_too_many_values(raw, values_max):
        raise MalformedJsonError(f"{subject} has more than {values_max} values")
    try:
        values = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedJsonError(
            f"{subject} is not JSON in UTF-8: {_shorten(str(error))}"
        ) from None
    if b"\\u0000" in raw or raw.count(b"{") + raw.count(b"[") > DEPTH_MAX:
        _require_keepable(values, subject)
    if _may_repeat_keys(raw, values):
        require_distinct_keys(raw, subject=subject)
    return values


def _require_keepable(values: Any, subject: str) -> None:
    for pointer, text, depth in _walk(values, "", 1):
        if depth > DEPTH_MAX:
            raise MalformedJsonError(f"{subject} is nested deeper than {DEPTH_MAX}")
        if "\0" in text:
            raise MalformedJsonError(
                "texts must not contain NUL",
                ({"pointer": pointer, "detail": "contains NUL"},),
            )


def _may_repeat_keys(raw: bytes, values: Any) -> bool:
    """Return False only if no key is repeated.

    The parser silently keeps the last value of a repeated key. So the colons of the text are
    counted: without repeated keys, each one follows a key or is inside a parsed string. A text with
    escaped colons counts as uncertain.
    """
    left = raw.count(b":")
    stack = [values]
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is str:
            left -= value.count(":")
        elif kind is dict:
            left -= len(value)
            for key, inner in value.items():
                if ":" in key:
                    left -= key.count(":")
                if type(inner) is str:
                    left -= inner.count(":")
                else:
                    stack.append(inner)
        elif kind is list:
            stack += value
    return left != 0 or b"\\u003" in raw


def require_distinct_keys(raw: bytes | str, *, subject: str) -> None:
    """Raise `DuplicateKeyError` with the place of the first key that an object has twice."""
    try:
        place = _repeated_place(json.loads(raw, object_pairs_hook=_Members.of))
    except RecursionError:
        raise MalformedJsonError(f"{subject} is nested too deep") from None
    if place is not None:
        raise DuplicateKeyError(
            f"{subject} has the key {_shorten(place)} twice; give it once",
            ({"pointer": place, "detail": "is given twice"},),
        )


class _Members(dict[str, Any]):
    """An object, and a key that it has twice, or None."""

    repeated: str | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> "_Members":
        members = cls()
        for key, value in pairs:
            if key in members and members.repeated is None:
                members.repeated = key
            members[key] = value
        return members


def _repeated_place(values: Any) -> str | None:
    """Return the JSON pointer of a repeated key, or None."""
    stack = [("", values)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, _Members):
            if value.repeated is not None:
                return f"{pointer}/{escape_pointer(value.repeated)}"
            inside: Iterable[tuple[Any, Any]] = value.items()
        elif isinstance(value, list):
            inside = enumerate(value)
        else:
            continue
        stack += [(f"{pointer}/{escape_pointer(str(key))}", inner) for key, inner in inside]
    return None


def _has_too_many_values(raw: bytes, values_max: int) -> bool:
    """Return True if the text has more values than allowed.

    It is decided from the bytes: parsing millions of values only to refuse them would block the
    server. Commas inside strings do not count.
    """
    if raw.count(b",") <= values_max:
        return False
    if raw.count(b'"') - raw.count(b'\\"') > 4 * values_max:
        return True
    return _STRING.sub(b"", raw).count(b",") > values_max


def _walk(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, str, int]]:
    if isinstance(value, str):
        yield pointer, value, depth
    elif isinstance(value, dict):
        yield pointer, "", depth
        if depth <= DEPTH_MAX:
            for key, member in value.items():
                yield pointer, key, depth
                yield from _walk(member, f"{pointer}/{escape_pointer(key)}", depth + 1)
    elif isinstance(value, list):
        yield pointer, "", depth
        if depth <= DEPTH_MAX:
            for index, item in enumerate(value):
                yield from _walk(item, f"{pointer}/{index}", depth + 1)


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
