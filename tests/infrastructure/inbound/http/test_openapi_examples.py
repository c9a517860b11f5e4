"""The examples in the description that the server gives of itself are what it takes and gives."""

import json
from typing import Any

import pytest

from tests.support.servers.attachment_server import AttachingHouse
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def operations(house: House) -> dict[str, dict[str, Any]]:
    paths = house.http.get("/openapi.json").json()["paths"]
    described = [operation for path in paths.values() for operation in path.values()]
    return {operation["operationId"]: operation for operation in described}


def test_the_example_of_a_spawn_is_taken(
    attaching: AttachingHouse, operations: dict[str, dict[str, Any]]
) -> None:
    content = operations["spawn"]["requestBody"]["content"]["application/json"]
    answer = attaching.http.post("/v1/spawns", json={**content["example"], "agentId": "main"})
    assert answer.status_code == 201
    run_id = answer.json()["runId"]
    attaching.undone(run_id)
    for name, real in {
        "spawn": answer.json(),
        "getRun": attaching.server.run(run_id),
        "listRuns": attaching.runs("agent:main:main")[0],
    }.items():
        responses = operations[name]["responses"]
        (success,) = [one for status, one in responses.items() if status < "300"]
        example = success["content"]["application/json"]["example"]
        receipt = (example["items"][0] if name == "listRuns" else example)["attachments"]
        where = f".openclaw/attachments/{run_id}"
        assert {**receipt, "relDir": where} == real["attachments"], name


def test_the_lines_of_what_if_are_as_in_the_example(
    house: House, operations: dict[str, dict[str, Any]]
) -> None:
    house.ended(house.session())
    operation = operations["whatIf"]
    body = {**operation["requestBody"]["content"]["application/json"]["example"], "only": []}
    answer = house.http.post("/v1/what-if", json={**body, "from": "pos:0"})
    assert answer.is_success, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()]
    example = operation["responses"]["200"]["content"]["application/x-ndjson"]["example"]
    expected = [json.loads(line) for line in example.splitlines()]
    assert [set(lines[0]), set(lines[-1])] == [set(expected[0]), set(expected[-1])]
    assert set(lines[-1]["totals"]) == set(expected[-1]["totals"])
