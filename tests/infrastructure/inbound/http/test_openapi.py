"""The OpenAPI description: made from the operations, complete and true."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import application
from application.operations import MODULES
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.responses.examples import EXAMPLES, EXPLANATION, example_of
from infrastructure.inbound.http.responses.problems import TITLES
from tests.support.builders.explained_spawns import ADMITTED, plan_facts, told
from tests.support.builders.run_histories import created, resolved
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import requested
from tests.support.http.described_answers import JSON, LINES, document, require_fit
from tests.support.servers.attachment_server import AttachmentServer
from tests.support.servers.server import Server

REPORTS = {"claimRun", "prolongClaim", "reportTranscript", "endRun"}
OPEN = {"getHealth", "getReadiness", "tradePageCode"}
KEYED = {operation.name for operation in OPERATIONS if operation.repeat == "key"}
DESCRIBED = {
    operation["operationId"]: (path, method, operation)
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
}
EACH = pytest.mark.parametrize("name", DESCRIBED)
# A text is not described any further.
EACH_JSON = pytest.mark.parametrize("name", [name for name in DESCRIBED if name != "getMetrics"])
OPTIONAL = {"totals"}
"""Members that a response may omit."""


def described(name: str) -> dict[str, Any]:
    return dict(DESCRIBED[name][2])


def codes_of(name: str) -> set[str]:
    """Return the problems that an operation is described with."""
    return {
        code
        for response in described(name)["responses"].values()
        for code in response["content"].get("application/problem+json", {}).get("examples", {})
    }


def successes(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return statuses and contents of a success: that of a created resource first, if there is
    one."""
    found = [
        (int(status), response["content"].get(JSON) or response["content"][LINES])
        for status, response in described(name)["responses"].items()
        if status < "300"
    ]
    return sorted(found, key=lambda pair: pair[0] != 201)


def examples(content: dict[str, Any]) -> list[Any]:
    """Return the example, or each of its lines if the response is line by line."""
    example = content["example"]
    lines = example.splitlines() if isinstance(example, str) else None
    return [json.loads(line) for line in lines] if lines is not None else [example]


@pytest.mark.server
def test_server_tells_the_document(server: Server) -> None:
    served = server.get("/openapi.json")
    # The document of a server has its version.
    assert served == json.loads(json.dumps({**document(), "info": served["info"]}))
    assert served["openapi"].startswith("3.1")
    assert served["info"]["title"] == "spawnlog"


def test_every_module_with_an_operation_is_in_the_table() -> None:
    modules = Path(application.__path__[0]).rglob("*.py")
    written = {
        str(module)
        for module in modules
        if re.search(r"^@operation\(", module.read_text("utf-8"), re.M)
    }
    missing = written - {str(module.__file__) for module in MODULES}
    assert not missing, "add to MODULES of application/operations.py"


def test_every_example_is_of_an_operation() -> None:
    assert set(EXAMPLES) == {row.name for row in OPERATIONS}


@pytest.mark.parametrize("kind", ["request", "response"])
def test_missing_example_is_named_with_its_file(kind: str) -> None:
    with pytest.raises(LookupError, match=rf"^newOne has no example: .*{kind}.*examples\.json"):
        example_of("newOne", kind)


@EACH
def test_operation_is_described_in_words_with_examples(name: str) -> None:
    operation = described(name)
    assert operation["summary"].strip()
    assert operation["description"].strip()
    for parameter in operation.get("parameters", ()):
        assert parameter.get("description", "").strip(), parameter["name"]
    success = [response for status, response in operation["responses"].items() if status < "300"]
    assert success
    for item in success:
        assert next(iter(item["content"].values()))["example"]
    if name in KEYED:
        content = operation["requestBody"]["content"][JSON]
        assert content["schema"]["$ref"].startswith("#/components/schemas/")


@EACH
def test_every_problem_of_operation_has_an_example_that_is_one(name: str) -> None:
    for status, response in described(name)["responses"].items():
        if status < "400":
            continue
        assert list(response["content"]) == ["application/problem+json"], status
        content = response["content"]["application/problem+json"]
        assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
        for code, example in content["examples"].items():
            value = example["value"]
            assert (value["code"], str(value["status"])) == (code, status)
            assert TITLES[code] == (value["status"], value["title"])
            assert value["detail"].strip()
            assert value["instance"].startswith("/")
            assert ("retryAfterMs" in value) is value["retryable"]


@EACH
def test_operation_tells_the_problems_it_may_answer_with(name: str) -> None:
    expected = {"foreign_host", "foreign_origin", "unavailable", "internal"}
    expected |= {"target_too_long", "headers_too_large"}
    if name not in OPEN:
        expected |= {"unauthorized", "not_permitted", "invalid_request"}
    if name in REPORTS:
        expected |= {"malformed_json", "not_json", "too_large", "claim_over", "run_over"}
    if name in KEYED:
        expected |= {"malformed_json", "not_json", "too_large"}
        expected |= {"idempotency_in_flight", "idempotency_key_reused"}
    assert expected <= codes_of(name)


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("spawn", {"spawn_forbidden", "spawn_error", "session_closed"}),
        (
            "sendMessage",
            {
                *("run_active", "session_closed", "no_session", "not_found", "erased"),
                *("spawn_forbidden", "spawn_error", "queue_full", "steered_too_soon"),
            },
        ),
        ("stopSession", {"not_found"}),
        ("patchSharedContext", {"not_found"}),
        ("listRuns", {"foreign_cursor"}),
        ("getRunPrompt", {"not_started"}),
        ("acknowledgeAnnouncement", {"no_announcement"}),
    ],
)
def test_operation_tells_problems_of_its_own(name: str, codes: set[str]) -> None:
    assert codes <= codes_of(name)


def test_health_needs_no_token_and_all_else_does() -> None:
    assert document()["security"] == [{"bearer": []}]
    for name in DESCRIBED:
        assert described(name).get("security") == ([] if name in OPEN else None), name


@pytest.mark.server
def test_values_within_their_limits_are_taken(server: Server) -> None:
    """Covers texts that are only compared, and numbers."""
    schemas = {
        parameter["name"]: parameter["schema"] for parameter in described("listRuns")["parameters"]
    }
    for name in ("agentId", "label", "limit", "stage", "status", "outcome", "order"):
        schema = schemas[name].get("items", schemas[name])
        bounds = [schema[bound] for bound in ("minimum", "maximum") if bound in schema]
        longest = ["x" * schema["maxLength"]] if "maxLength" in schema else []
        for value in (*bounds, *longest, *schema.get("enum", ())):
            answer = server.http.get("/v1/runs", params={name: value})
            assert answer.status_code == 200, f"{name}={value}: {answer.text}"


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from references(item)


def vague(schema: Any) -> bool:
    """Return True if an object somewhere in a schema may have any members."""
    if isinstance(schema, list):
        return any(map(vague, schema))
    if not isinstance(schema, dict):
        return False
    named = {"properties", "additionalProperties"} & {*schema}
    return (schema.get("type") == "object" and not named) or any(map(vague, schema.values()))


@EACH_JSON
def test_example_is_an_answer_as_it_is_described(name: str) -> None:
    path, method, _ = DESCRIBED[name]
    for status, content in successes(name):
        assert not vague(content["schema"])
        for example in examples(content):
            require_fit(path, method, status, example)


@EACH_JSON
def test_answer_with_other_members_is_not_as_described(name: str) -> None:
    path, method, _ = DESCRIBED[name]
    (status, content), *_ = successes(name)
    example = examples(content)[0]
    fewer = [
        {key: value for key, value in example.items() if key != left_out}
        for left_out in example.keys() - OPTIONAL
    ]
    for wrong in ({**example, "another": 1}, *fewer):
        with pytest.raises(AssertionError, match="is not as described"):
            require_fit(path, method, status, wrong)


def test_example_of_explanation_has_every_rule() -> None:
    decisions = told(
        requested(),
        ADMITTED,
        resolved(receipts=(receipt("who", "injected"),), candidates=(candidate("who", "main"),)),
        created(facts=plan_facts()),
    )
    real = [decision.members() for decision in decisions]
    assert [decision["rule"] for decision in EXPLANATION["decisions"]] == [
        item["rule"] for item in real
    ]
    for shown, real_decision in zip(EXPLANATION["decisions"], real, strict=True):
        assert set(shown) == set(real_decision)
        assert set(shown["compared"]) == set(real_decision["compared"]), shown["rule"]
        assert shown["step"] == real_decision["step"]


@pytest.mark.server
def test_example_of_spawn_is_taken(attaching: AttachmentServer) -> None:
    body = described("spawn")["requestBody"]["content"][JSON]["example"]
    answer = attaching.http.post("/v1/spawns", json={**body, "agentId": "main"})
    assert answer.status_code == 201
    run_id = answer.json()["runId"]
    attaching.undone(run_id)
    for name, real in {
        "spawn": answer.json(),
        "getRun": attaching.run(run_id),
        "listRuns": attaching.runs(requester="agent:main:main")[0],
    }.items():
        ((_, content),) = successes(name)
        (example,) = examples(content)
        receipt = (example["items"][0] if name == "listRuns" else example)["attachments"]
        where = f".openclaw/attachments/{run_id}"
        assert {**receipt, "relDir": where} == real["attachments"], name


@pytest.mark.server
def test_lines_of_what_if_are_as_in_the_example(server: Server) -> None:
    server.announced(session=server.new_session())
    body = described("whatIf")["requestBody"]["content"][JSON]["example"]
    answer = server.http.post("/v1/what-if", json={**body, "only": [], "from": "pos:0"})
    assert answer.is_success, answer.text
    lines = [json.loads(line) for line in answer.text.splitlines()]
    expected = examples(successes("whatIf")[0][1])
    assert [set(lines[0]), set(lines[-1])] == [set(expected[0]), set(expected[-1])]
    assert set(lines[-1]["totals"]) == set(expected[-1]["totals"])
