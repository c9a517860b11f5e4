"""The generated part of the client is current, sends what the document describes, and reads every
example of an answer.
"""

import inspect
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import UUID

import pytest

from generators.client.description import python_name
from generators.client.methods import ITERATORS
from generators.client.write import PACKAGE, generated
from infrastructure.inbound.http.openapi import document
from spawnlog import AsyncClient, Client
from spawnlog.core.answer import read_value
from spawnlog.core.errors import InvalidSettingError
from spawnlog.core.request import Request
from spawnlog.core.wait import RUN_MODELS
from tests.spawnlog.silent import SilentClient

RUN = "11111111-0000-4000-8000-000000000001"
DOCUMENT = document()
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


@pytest.fixture
def silent() -> Iterator[SilentClient]:
    with SilentClient() as client:
        yield client


def request_of(client: SilentClient, operation: str, **given: Any) -> Request[Any]:
    """Return the request of an operation; a parameter that is required and not given is `x`."""
    method = getattr(client, python_name(operation))
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            given.setdefault(name, {} if name == "changes" else "x")
    method(**given)
    return client.requests[-1]


@pytest.mark.process
def test_generated_modules_are_current() -> None:
    outdated = [
        name for name, text in generated().items() if (PACKAGE / name).read_text("utf-8") != text
    ]
    assert outdated == [], "write them anew: make client"


def test_wait_of_a_method_is_described_in_seconds() -> None:
    described = [
        " ".join(text.split())
        for name in ("get_run", "get_run_transcript", "list_announcements")
        if (text := (inspect.getdoc(getattr(Client, name)) or "").partition("    wait: ")[2])
    ]
    assert len(described) == 3
    assert [item for item in described if "60 seconds at most" not in item or "30s" in item] == []


def test_id_is_text_in_every_answer_and_argument() -> None:
    for name in ("models.py", "bodies.py", "methods.py"):
        assert "UUID" not in (PACKAGE / name).read_text("utf-8"), name


def test_query_takes_no_other_type_than_text(silent: SilentClient) -> None:
    with pytest.raises(InvalidSettingError, match="runId is a UUID: give it as text"):
        silent.list_events(run_id=UUID(RUN))  # type: ignore[arg-type]


def test_method_description_names_python_arguments() -> None:
    names = {
        parameter["name"]
        for _, _, row in OPERATIONS.values()
        for parameter in row.get("parameters", ())
    }
    spelled = {name for name in names if python_name(name) != name and name.isalpha()}
    wrong = [
        (method, word)
        for method in map(python_name, OPERATIONS)
        for word in re.findall(r"`(\w+)`", inspect.getdoc(getattr(Client, method)) or "")
        if word in spelled
    ]
    assert wrong == []
    assert "`next_cursor` of the" in (inspect.getdoc(Client.list_runs) or "")
    assert "%2F" not in (inspect.getdoc(Client.get_session) or "")


def test_completion_shows_documented_names() -> None:
    shown = {name for name in dir(Client("http://127.0.0.1:1", token="x")) if name[0] != "_"}
    unknown = shown - {python_name(operation) for operation in OPERATIONS} - set(ITERATORS.values())
    assert unknown == {
        "address", "answer", "close", "follow_events", "from_environment", "retries", "run",
        "session",
    }  # fmt: skip


def test_wait_reads_the_models_of_the_run(silent: SilentClient) -> None:
    assert request_of(silent, "getRun").answers == RUN_MODELS


def test_both_clients_have_the_same_methods() -> None:
    names = [{name for name in dir(item) if name[0] != "_"} for item in (Client, AsyncClient)]
    assert names[0] == names[1]
    assert {python_name(operation) for operation in OPERATIONS} <= names[0]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_method_sends_every_parameter(operation: str, silent: SilentClient) -> None:
    _, path, described = OPERATIONS[operation]
    given: dict[str, Any] = {}
    texts: dict[str, dict[str, list[str]]] = {"path": {}, "query": {}, "header": {}}
    for parameter in described.get("parameters", ()):
        value, sent = value_of(parameter)
        given[python_name(parameter["name"])] = value
        texts[parameter["in"]][parameter["name"]] = sent
    members = {} if operation == "patchSharedContext" else body_of(described)
    given |= {python_name(name): {"some": "value"} for name in members}
    request = request_of(silent, operation, **given)
    parts = urlsplit(request.target)
    for name, (text,) in texts["path"].items():
        path = path.replace(f"{{{name}}}", text)
    assert unquote(parts.path) == path
    assert parse_qs(parts.query) == texts["query"]
    assert {name: [request.headers[name]] for name in texts["header"]} == texts["header"]
    assert set(json.loads(request.content or b"{}")) == set(members)


def value_of(parameter: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return a value that the parameter may have, and the texts that are sent for it."""
    if parameter["name"] == "wait":
        return 30, ["30s"]
    kind = parameter["schema"]["type"]
    if kind == "array":
        return ["one", "two"], ["one", "two"]
    return {
        "integer": (7, ["7"]),
        "boolean": (True, ["true"]),
        "string": ("some text", ["some text"]),
    }[kind]


def body_of(described: dict[str, Any]) -> dict[str, Any]:
    if "requestBody" not in described:
        return {}
    reference = described["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = DOCUMENT["components"]["schemas"][reference.rpartition("/")[2]]
    members: dict[str, Any] = schema["properties"]
    return members


@pytest.mark.parametrize("operation", OPERATIONS)
def test_command_is_repeated_only_if_that_is_safe(operation: str, silent: SilentClient) -> None:
    method, _, described = OPERATIONS[operation]
    request = request_of(silent, operation)
    has_key = any(
        parameter["name"] == "Idempotency-Key" for parameter in described.get("parameters", ())
    )
    assert (request.idempotency_key is not None) == has_key
    changes_at_once = {"clearPreamble", "patchSharedContext", "revokePageToken", "tradePageCode"}
    assert request.again == (operation not in changes_at_once)
    assert method == request.method


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"getMetrics", "whatIf"}))
def test_example_answer_is_read_whole(operation: str, silent: SilentClient) -> None:
    names = request_of(silent, operation).answers
    responses = OPERATIONS[operation][2]["responses"]
    for status in [status for status in responses if status < "300"]:
        example = responses[status]["content"]["application/json"]["example"]
        value = read_value(names, json.dumps(example).encode())
        assert instants(value.model_dump(mode="json", exclude_unset=True)) == instants(example)


def instants(value: Any) -> Any:
    """Return JSON with instants in place of their texts, which differ in their trailing zeros."""
    match value:
        case dict():
            return {name: instants(value) for name, value in value.items()}
        case list():
            return [instants(item) for item in value]
        case str() if re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", value):
            return datetime.fromisoformat(value)
        case _:
            return value


def test_every_argument_of_spawn_is_described() -> None:
    described = inspect.getdoc(Client.spawn) or ""
    arguments = set(inspect.signature(Client.spawn).parameters) - {"self", "requester"}
    assert [argument for argument in arguments if f"\n    {argument}: " not in described] == []
