"""The description that the server gives of itself."""

from collections.abc import Iterator
from typing import Any

import pytest

from infrastructure.inbound.http.responses.problems import TITLES
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

REPORTS = {"claimRun", "prolongClaim", "reportTranscript", "endRun"}
OPEN = {"getHealth", "getReadiness", "tradePageCode"}
BODIES = {"spawn", "respawn", "stopRun", "sendMessage", "stopSession"}
BODIES |= {
    "acknowledgeAnnouncement",
    "redriveAnnouncement",
    "provideTranscript",
    "yieldSession",
    "writePreamble",
}


@pytest.fixture(scope="module")
def document(house: House) -> dict[str, Any]:
    answer = house.http.get("/openapi.json")
    assert answer.status_code == 200
    return dict(answer.json())


@pytest.fixture(scope="module")
def operations(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        operation["operationId"]: operation
        for path in document["paths"].values()
        for operation in path.values()
    }


def codes_of(operation: dict[str, Any]) -> set[str]:
    """The problems that an operation is described with."""
    return {
        code
        for response in operation["responses"].values()
        for code in response["content"].get("application/problem+json", {}).get("examples", {})
    }


def test_it_is_openapi_of_today(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] == "spawnlog"


def test_every_operation_is_described_in_words(operations: dict[str, dict[str, Any]]) -> None:
    for name, operation in operations.items():
        assert operation["summary"].strip(), name
        assert operation["description"].strip(), name
        for parameter in operation.get("parameters", ()):
            assert parameter.get("description", "").strip(), f"{name}: {parameter['name']}"


def test_every_operation_has_an_example_of_success(operations: dict[str, dict[str, Any]]) -> None:
    for name, operation in operations.items():
        success = [one for status, one in operation["responses"].items() if status < "300"]
        assert success, name
        for one in success:
            (content,) = list(one["content"].values())[:1]
            assert content["example"], name


def test_every_problem_has_an_example_that_is_one(operations: dict[str, dict[str, Any]]) -> None:
    for name, operation in operations.items():
        for status, response in operation["responses"].items():
            if status < "400":
                continue
            assert list(response["content"]) == ["application/problem+json"], (name, status)
            content = response["content"]["application/problem+json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
            for code, example in content["examples"].items():
                value = example["value"]
                assert (value["code"], str(value["status"])) == (code, status)
                assert TITLES[code] == (value["status"], value["title"])
                assert value["detail"].strip()
                assert value["instance"].startswith("/")
                assert ("retryAfterMs" in value) is value["retryable"]


def test_every_operation_tells_the_problems_it_may_answer_with(
    operations: dict[str, dict[str, Any]],
) -> None:
    for name, operation in operations.items():
        expected = {"foreign_host", "foreign_origin", "unavailable", "internal"}
        expected |= {"target_too_long", "headers_too_large"}
        if name not in OPEN:
            expected |= {"unauthorized", "not_permitted", "invalid_request"}
        if name in REPORTS:
            expected |= {"malformed_json", "not_json", "too_large", "claim_over", "run_over"}
        if name in BODIES:
            expected |= {"malformed_json", "not_json", "too_large"}
            expected |= {"idempotency_in_flight", "idempotency_key_reused"}
        assert expected <= codes_of(operation), (name, expected - codes_of(operation))
    assert {"spawn_forbidden", "spawn_error", "session_closed"} <= codes_of(operations["spawn"])
    assert {
        *("run_active", "session_closed", "no_session", "not_found", "erased"),
        *("spawn_forbidden", "spawn_error", "queue_full", "steered_too_soon"),
    } <= codes_of(operations["sendMessage"])
    assert "not_found" in codes_of(operations["stopSession"])
    assert "not_found" in codes_of(operations["patchSharedContext"])
    assert "foreign_cursor" in codes_of(operations["listRuns"])
    assert "not_started" in codes_of(operations["getRunPrompt"])
    assert "no_announcement" in codes_of(operations["acknowledgeAnnouncement"])


def test_health_needs_no_token_and_all_else_does(
    document: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    assert document["security"] == [{"bearer": []}]
    for name, operation in operations.items():
        assert operation.get("security") == ([] if name in OPEN else None), name


def parameters_of(operations: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, operation in operations.items():
        for parameter in operation.get("parameters", ()):
            yield name, parameter


def test_every_parameter_tells_its_limits(operations: dict[str, dict[str, Any]]) -> None:
    for name, parameter in parameters_of(operations):
        schema, where = parameter["schema"], f"{name}: {parameter['name']}"
        one = schema["items"] if schema["type"] == "array" else schema
        if one["type"] == "string":
            assert "enum" in one or one["maxLength"] > 0, where
        elif one["type"] == "integer":
            assert one["minimum"] < one["maximum"], where
        else:
            assert one["type"] == "boolean", where


def test_what_is_just_within_the_limits_is_taken(document: dict[str, Any], house: House) -> None:
    """Of texts that are compared only, and of numbers."""
    for name in ("agentId", "label", "limit", "stage", "status", "outcome", "order"):
        parameters = document["paths"]["/v1/runs"]["get"]["parameters"]
        schema = next(one["schema"] for one in parameters if one["name"] == name)
        one = schema.get("items", schema)
        bounds = [one[bound] for bound in ("minimum", "maximum") if bound in one]
        longest = ["x" * one["maxLength"]] if "maxLength" in one else []
        for value in (*bounds, *longest, *one.get("enum", ())):
            answer = house.http.get("/v1/runs", params={name: value})
            assert answer.status_code == 200, f"{name}={value}: {answer.text}"


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set[str]().union(*map(references, value)) if isinstance(value, list) else set()

    for reference in references(document):
        place: Any = document
        for name in reference.removeprefix("#/").split("/"):
            assert name in place, reference
            place = place[name]


def test_the_schema_of_problems_names_every_member(document: dict[str, Any]) -> None:
    problem = document["components"]["schemas"]["Problem"]
    named = set(problem["properties"])
    assert {"rule", "limit", "current", "runId", "childSessionKey", "retryAfterMs"} <= named
    assert problem["properties"]["code"]["enum"] == sorted(TITLES)


def test_bodies_are_described_by_their_fields(
    document: dict[str, Any], operations: dict[str, dict[str, Any]]
) -> None:
    schemas = document["components"]["schemas"]
    body = schemas["SpawnRequest"]
    assert body["required"] == ["requester", "task"]
    assert {"requester", "task", "agentId", "cleanup", "runTimeoutSeconds"} <= set(
        body["properties"]
    )
    assert schemas["RequesterBody"]["required"] == ["sessionKey"]
    for name in BODIES:
        content = operations[name]["requestBody"]["content"]["application/json"]
        assert content["schema"]["$ref"].startswith("#/components/schemas/"), name
