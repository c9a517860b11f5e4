"""JSON from outside: a duplicate key is found, and named by its place."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as some

from infrastructure.contract.json_values import (
    DEPTH_MAX,
    DuplicateKeyError,
    MalformedJsonError,
    parse_json,
    require_distinct_keys,
)

KEYS = some.sampled_from(["a", "b", "a:b", ":", "", "~/", "é", '"', "\\", "\\u003a", "x" * 150])
TEXTS = some.one_of(KEYS, some.text(':{}[],"\\u03aA\n ', max_size=12))


def written(text: str, choice: int) -> str:
    """Return a string as JSON, now and then with a colon as an escape."""
    plain = json.dumps(text, ensure_ascii=choice % 2 == 0)
    return plain.replace(":", ["\\u003a", "\\u003A", ":", ":"][choice % 4])


@some.composite
def documents(draw: some.DrawFn, depth: int = 3) -> str:
    """Draw a JSON text whose objects may have duplicate keys."""
    kind = draw(some.integers(0, 4 if depth else 1))
    if kind == 0:
        return written(draw(TEXTS), draw(some.integers(0, 3)))
    if kind == 1:
        return draw(some.sampled_from(["1", "-2.5e3", "null", "true"]))
    inner = draw(some.lists(documents(depth - 1), max_size=3))
    if kind == 2:
        return "[" + " , ".join(inner) + "]"
    members = [f"{written(draw(KEYS), draw(some.integers(0, 3)))} : {item}" for item in inner]
    return "{" + ",\n".join(members) + "}"


def has_repeated_key(text: str) -> bool:
    found = False

    def take(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=take)
    return found


@given(documents())
def test_repeated_key_is_refused_and_no_other_text(text: str) -> None:
    if has_repeated_key(text):
        with pytest.raises(DuplicateKeyError) as refused:
            parse_json(text.encode(), subject="the body")
        assert refused.value.errors[0]["pointer"].startswith("/")
    else:
        assert parse_json(text.encode(), subject="the body") == json.loads(text)


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ('{"task": "a", "task": "b"}', "/task"),
        ('{"task": "a", "task": "a"}', "/task"),
        ('{"a": {"b": [0, {"c": 1, "c": 2}]}}', "/a/b/1/c"),
        ('{"a~/b": 1, "a~/b": 2}', "/a~0~1b"),
        ('{"a": {"x": 1, "x": 2}, "a": 3}', "/a"),
        ('{"t": 1, "\\u0074": 2}', "/t"),
        ('{"a": ":\\u003a", "a": 1}', "/a"),
        ('{"b": "\\u003a", "a": 1, "a": 2}', "/a"),
    ],
)
def test_repeated_key_is_named_by_its_place(text: str, pointer: str) -> None:
    with pytest.raises(
        DuplicateKeyError, match=r"the body has the key .* twice; give it once"
    ) as why:
        parse_json(text.encode(), subject="the body")
    assert why.value.errors == ({"pointer": pointer, "detail": "is given twice"},)
    with pytest.raises(DuplicateKeyError):
        require_distinct_keys(text, subject="the body")


def test_depth_counts_brackets_of_values_alone() -> None:
    assert parse_json(orjson.dumps(["["] * (DEPTH_MAX + 1)), subject="it") == ["["] * (
        DEPTH_MAX + 1
    )
    deep = "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1)
    with pytest.raises(MalformedJsonError, match="nested deeper"):
        parse_json(deep.encode(), subject="it")
