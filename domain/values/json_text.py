"""Strict JSON reading for external input, and compact JSON writing."""

import json
import math
from typing import NoReturn

JSON_DEPTH_MAX = 200
POINTER_PART_CHARACTERS_MAX = 100
_DIGITS_MAX = 300


class NotJsonError(ValueError):
    """The text is not JSON, or is nested deeper than 200 levels."""


def read_json(text: str) -> object:
    """Parse JSON text from outside.

    `NaN` and `Infinity` are rejected. If a key is repeated, the last value wins. Numbers that
    cannot be represented become None. A leading byte order mark is ignored.

    Raises:
        NotJsonError: The text is not JSON, or is nested deeper than 200 levels.
    """
    try:
        value: object = json.loads(
            text.strip().removeprefix("\ufeff"),
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError):
        raise NotJsonError("the text is not JSON") from None
    if _is_too_deep(value):
        raise NotJsonError(f"the JSON is nested deeper than {JSON_DEPTH_MAX} levels")
    return value


def compact_json(value: object) -> str:
    """Return the value as JSON without spaces, keeping key order and non-ASCII characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(value: object) -> str:
    """Return a string unchanged, and any other value as compact JSON."""
    return value if isinstance(value, str) else compact_json(value)


def escape_pointer(key: str) -> str:
    """Return a key as one segment of a JSON pointer, cut to its first 100 characters."""
    return key.replace("~", "~0").replace("/", "~1")[:POINTER_PART_CHARACTERS_MAX]


def merge_patch(before: object, patch: object) -> object:
    """Apply an RFC 7396 merge patch: merge objects, remove members set to null, replace the
    rest.
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def _parse_int(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS_MAX else None


def _parse_float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _refuse_constant(constant: str) -> NoReturn:
    raise NotJsonError(f"{constant} is not JSON")


def _is_too_deep(value: object) -> bool:
    """Return True if the nesting exceeds the limit.

    The interpreter's own recursion limit would depend on how deep the current stack is.
    """
    level = [value]
    for _ in range(JSON_DEPTH_MAX + 1):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
