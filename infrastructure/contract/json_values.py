"""JSON from outside that can be kept: bounded in values and depth, Unicode without NUL."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

DEPTH_MAX = 100
VALUES_MAX = 10_000

# One that does not end goes to the end of the text, so that no text is gone through twice.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class MalformedJson(ValueError):
    """A text that is no JSON, or that cannot be kept; `errors` name the value by its pointer."""

    def __init__(self, text: str, errors: tuple[Mapping[str, str], ...] = ()) -> None:
        super().__init__(text)
        self.errors = errors


def parse_json(raw: bytes, values_max: int = VALUES_MAX, *, what: str) -> Any:
    """The values of a JSON text; `what` is how errors call it. Raises `MalformedJson`."""
    if _has_too_many_values(raw, values_max):
        raise MalformedJson(f"{what} has more than {values_max} values")
    try:
        values = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedJson(f"{what} is not JSON in UTF-8: {_shorten(str(error))}") from None
    for pointer, text, depth in _walk(values, "", 1):
        if depth > DEPTH_MAX:
            raise MalformedJson(f"{what} is nested deeper than {DEPTH_MAX}")
        if "\0" in text:
            raise MalformedJson(
                "texts must not contain NUL",
                ({"pointer": pointer, "detail": "contains NUL"},),
            )
    return values


def _has_too_many_values(raw: bytes, values_max: int) -> bool:
    """Told from the bytes: to make millions of values only to refuse them would hold up the server
    for all its callers. Commas inside strings count for nothing, they are text."""
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
            for key, item in value.items():
                yield pointer, key, depth
                yield from _walk(item, f"{pointer}/{escape_pointer(key)}", depth + 1)
    elif isinstance(value, list):
        yield pointer, "", depth
        if depth <= DEPTH_MAX:
            for index, item in enumerate(value):
                yield from _walk(item, f"{pointer}/{index}", depth + 1)


def escape_pointer(key: str) -> str:
    """A key as a part of a JSON pointer, its beginning at most."""
    return key.replace("~", "~0").replace("/", "~1")[:100]


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "…"
