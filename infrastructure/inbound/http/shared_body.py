"""What a request says of a shared context: its keys, its values, and how much that may be."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from domain.bounded_text import single_line
from domain.dependencies import DependencyAsked
from domain.json_text import compact_json
from domain.shared_context import (
    KEY_RULE,
    REFERENCE_PREFIX,
    SHARED_BYTES_MAX,
    SHARED_DEPTH_MAX,
    SHARED_KEYS_MAX,
    is_key,
    size_of,
)
from domain.shared_facts import SharedScope
from domain.spawn_command import SharedGiven
from infrastructure.inbound.http.requests import wrong_at

POINTER = "/sharedContext"
REFERENCE = "reference"
KEY_SHOWN_CHARACTERS_MAX = 128


def references_of(values: Mapping[str, Any] | None) -> tuple[DependencyAsked, ...]:
    """The runs whose results are to arrive, by the names that they are to arrive under. 422 for
    what refers to none."""
    names = [key for key in values or () if key.startswith(REFERENCE_PREFIX)]
    return tuple(_reference(key, values or {}) for key in names)


def shared_given(values: Mapping[str, Any] | None, scope: SharedScope) -> SharedGiven | None:
    """What a spawn shares but for the results of others; None when it shares nothing. 422 for what
    cannot be shared."""
    plain = {
        key: value for key, value in (values or {}).items() if not key.startswith(REFERENCE_PREFIX)
    }
    return SharedGiven(values=literals(plain, POINTER), scope=scope) if plain else None


def literals(values: Mapping[str, Any], at: str) -> tuple[tuple[str, str], ...]:
    """Keys with their values as compact JSON. 422 for what cannot be shared."""
    if len(values) > SHARED_KEYS_MAX:
        raise wrong_at(at or "/", f"has {len(values)} keys and may have {SHARED_KEYS_MAX}")
    for key, value in values.items():
        if not is_key(key):
            raise wrong_at(pointer_of(key, at), KEY_RULE)
        _must_be_plain(value, at or "/")
    texts = tuple((key, compact_json(value)) for key, value in values.items())
    size = size_of((key, len(text.encode())) for key, text in texts).bytes
    if size > SHARED_BYTES_MAX:
        raise wrong_at(
            at or "/",
            f"has {size} bytes of JSON and may have {SHARED_BYTES_MAX}; share less, or attach a"
            " file",
        )
    return texts


def pointer_of(key: str, at: str) -> str:
    """The JSON pointer of a key, cut where it is longer than any key may be."""
    shown = single_line(key, characters_max=KEY_SHOWN_CHARACTERS_MAX)
    return f"{at}/{shown.replace('~', '~0').replace('/', '~1')}"


def _reference(key: str, values: Mapping[str, Any]) -> DependencyAsked:
    pointer, name = pointer_of(key, POINTER), key.removeprefix(REFERENCE_PREFIX)
    if not name:
        raise wrong_at(pointer, "names no run")
    if values[key] != REFERENCE:
        raise wrong_at(pointer, f'must be "{REFERENCE}"')
    if name in values:
        shown = single_line(name, characters_max=KEY_SHOWN_CHARACTERS_MAX)
        raise wrong_at(pointer, f"stands beside {shown}; one of them")
    if not is_key(name):
        raise wrong_at(pointer, KEY_RULE)
    return DependencyAsked(name, "reference")


def _must_be_plain(value: object, at: str) -> None:
    """The whole is the first level, objects and lists in it are the second."""
    level = [value]
    for _ in range(SHARED_DEPTH_MAX):
        if any(isinstance(one, float) and not math.isfinite(one) for one in level):
            raise wrong_at(at, "has a number that is too large")
        nested = [one for one in level if isinstance(one, dict | list)]
        if not nested:
            return
        level = [inner for outer in nested for inner in _inside(outer)]
    raise wrong_at(at, f"is nested deeper than {SHARED_DEPTH_MAX} levels")


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
