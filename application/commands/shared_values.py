"""The shared context of a request: keys, values and their limits."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from application.queries.errors import invalid_value
from domain.session.shared_context import (
    KEY_RULE,
    REFERENCE_PREFIX,
    SHARED_BYTES_MAX,
    SHARED_DEPTH_MAX,
    SHARED_KEYS_MAX,
    is_key,
    shared_size,
)
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.request import SharedContextInput
from domain.values.json_text import compact_json
from domain.values.shared_values import SharedScope
from domain.values.text import single_line

POINTER = "/sharedContext"
REFERENCE = "reference"
KEY_SHOWN_CHARACTERS_MAX = 128


def references_of(values: Mapping[str, Any] | None) -> tuple[DependencyRequest, ...]:
    """Return the referenced runs by their keys. Refuse an invalid reference."""
    names = [key for key in values or () if key.startswith(REFERENCE_PREFIX)]
    return tuple(_reference(key, values or {}) for key in names)


def parse_shared_values(
    values: Mapping[str, Any] | None, scope: SharedScope
) -> SharedContextInput | None:
    """Return the values that a spawn shares, without references; None if there are none.

    Raises:
        QueryError: If a key or value cannot be shared.
    """
    plain = {
        key: value for key, value in (values or {}).items() if not key.startswith(REFERENCE_PREFIX)
    }
    return SharedContextInput(values=literals(plain, POINTER), scope=scope) if plain else None


def literals(values: Mapping[str, Any], at: str) -> tuple[tuple[str, str], ...]:
    """Return keys with their values as compact JSON.

    Raises:
        QueryError: If a key or value cannot be shared.
    """
    if len(values) > SHARED_KEYS_MAX:
        raise invalid_value(
            at or "/", f"has {len(values)} keys, more than the {SHARED_KEYS_MAX} allowed"
        )
    for key, value in values.items():
        if not is_key(key):
            raise invalid_value(pointer_of(key, at), KEY_RULE)
        _require_plain_value(value, at or "/")
    texts = tuple((key, compact_json(value)) for key, value in values.items())
    size = shared_size((key, len(text.encode())) for key, text in texts).bytes
    if size > SHARED_BYTES_MAX:
        raise invalid_value(
            at or "/",
            f"has {size} bytes of JSON, more than the {SHARED_BYTES_MAX} allowed; share less,"
            " or attach a file",
        )
    return texts


def pointer_of(key: str, at: str) -> str:
    """Return the JSON pointer of a key, cut if the key is too long."""
    shown = single_line(key, characters_max=KEY_SHOWN_CHARACTERS_MAX)
    return f"{at}/{shown.replace('~', '~0').replace('/', '~1')}"


def _reference(key: str, values: Mapping[str, Any]) -> DependencyRequest:
    pointer, name = pointer_of(key, POINTER), key.removeprefix(REFERENCE_PREFIX)
    if not name:
        raise invalid_value(pointer, "names no run")
    if values[key] != REFERENCE:
        raise invalid_value(pointer, f'must be "{REFERENCE}"')
    if name in values:
        shown = single_line(name, characters_max=KEY_SHOWN_CHARACTERS_MAX)
        raise invalid_value(pointer, f"conflicts with {shown}; give only one")
    if not is_key(name):
        raise invalid_value(pointer, KEY_RULE)
    return DependencyRequest(name, "reference")


def _require_plain_value(value: object, at: str) -> None:
    """Refuse infinite numbers and deep nesting. The value itself is the first level."""
    level = [value]
    for _ in range(SHARED_DEPTH_MAX):
        if any(isinstance(item, float) and not math.isfinite(item) for item in level):
            raise invalid_value(at, "has a number that is too large")
        nested = [item for item in level if isinstance(item, dict | list)]
        if not nested:
            return
        level = [inner for outer in nested for inner in _nested_values(outer)]
    raise invalid_value(at, f"is nested deeper than {SHARED_DEPTH_MAX} levels")


def _nested_values(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
