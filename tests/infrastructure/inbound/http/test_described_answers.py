"""The description says what every answer has: a client can be generated from it."""

from typing import Any

import httpx2
import orjson
import pytest

from tests.support.http.described_answers import (
    JSON,
    LINES,
    check_answer,
    document,
    must_fit,
)

OPERATIONS = [
    (path, method, operation)
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
    # A text is not described any further.
    if operation["operationId"] != "getMetrics"
]
NAMES = [operation["operationId"] for _, _, operation in OPERATIONS]


def success(operation: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """The status of success, and what is said of its JSON."""
    (status, response), *_ = successes(operation)
    return status, response


def successes(operation: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """All of them, the usual one first: that of something made, where there is one."""
    found = [
        (int(status), one["content"].get(JSON) or one["content"][LINES])
        for status, one in operation["responses"].items()
        if status < "300"
    ]
    return sorted(found, key=lambda one: one[0] != 201)


def examples(described: dict[str, Any]) -> list[Any]:
    """The example, or each line of one that is answered line by line."""
    example = described["example"]
    return (
        [orjson.loads(one) for one in example.splitlines()]
        if isinstance(example, str)
        else [example]
    )


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=NAMES)
def test_every_example_is_an_answer_as_it_is_described(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    for status, described in successes(operation):
        for one in examples(described):
            must_fit(path, method, status, one)


OPTIONAL = {"totals"}
"""Members that an answer may leave out."""


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=NAMES)
def test_an_answer_with_a_member_too_few_or_too_many_is_not_as_described(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    status, described = success(operation)
    example = examples(described)[0]
    with pytest.raises(AssertionError, match="is not as described"):
        must_fit(path, method, status, {**example, "another": 1})
    for name in example.keys() - OPTIONAL:
        fewer = {key: value for key, value in example.items() if key != name}
        with pytest.raises(AssertionError, match="is not as described"):
            must_fit(path, method, status, fewer)


def test_answers_are_found_by_their_paths() -> None:
    request = httpx2.Request("GET", "http://test/v1/sessions/a%2Fb/announcements?limit=1")
    check_answer(httpx2.Response(200, json={"items": [], "nextAfter": None}, request=request))
    with pytest.raises(AssertionError, match="is not as described"):
        check_answer(httpx2.Response(200, json={"items": []}, request=request))
    check_answer(httpx2.Response(404, json={}, request=request))


def test_no_answer_is_described_as_just_any_object() -> None:
    def vague(schema: Any, path: str) -> list[str]:
        if isinstance(schema, list):
            return [one for item in schema for one in vague(item, path)]
        if not isinstance(schema, dict):
            return []
        if schema.get("type") == "object" and not {"properties", "additionalProperties"} & {
            *schema
        }:
            return [path]
        return [one for name, item in schema.items() for one in vague(item, f"{path}/{name}")]

    for _, _, operation in OPERATIONS:
        assert not vague(success(operation)[1]["schema"], operation["operationId"])
