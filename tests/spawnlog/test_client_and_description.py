"""The client has all that the description of the API has: each operation, parameter and member."""

import inspect
import json
import keyword
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, get_args, get_type_hints
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from pydantic import BaseModel

from infrastructure.inbound.http.openapi import BODIES, WITHOUT_KEY, document, documented_routes
from infrastructure.inbound.http.operations import OPERATIONS as ROWS
from infrastructure.inbound.http.routes.what_if import LINES, WhatIfFilter
from infrastructure.inbound.http.schemas.external_runs import UsageBody
from infrastructure.inbound.http.schemas.respawn import TranscriptChoice
from infrastructure.inbound.http.schemas.spawn import AttachAsBody, AttachmentBody, RequesterBody
from infrastructure.inbound.http.schemas.transcript import EntryBody
from spawnlog import AsyncClient, Client
from spawnlog.core.answer import model
from spawnlog.core.models import MODULES
from spawnlog.core.request import PageRequest, Request
from spawnlog.operations import bodies, control, external_runs, log, runs, server, sessions

MODULES_OF_OPERATIONS: tuple[ModuleType, ...] = (
    control,
    external_runs,
    log,
    runs,
    server,
    sessions,
)
BODY_MODELS = {one.__name__: one for one in BODIES}


DOCUMENT = document()
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SENT_ONCE = {"tradePageCode"} | {row.name for row in ROWS if row.repeat == "once"}
ROUTES = {route.operation_id: route for route in documented_routes()}


def python_name(name: str) -> str:
    """The name of a parameter in Python."""
    made = re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)
    made = made.replace("-_", "_").removeprefix("_")
    return f"{made}_" if keyword.iskeyword(made) else made


def function_of(operation: str) -> Callable[..., Request[Any]]:
    """What makes the requests of an operation."""
    name = python_name(operation)
    (found,) = [getattr(one, name) for one in MODULES_OF_OPERATIONS if hasattr(one, name)]
    made: Callable[..., Request[Any]] = found
    return made


def body_of(operation: dict[str, Any]) -> type[BaseModel] | None:
    """The model of the body of an operation."""
    body = operation.get("requestBody")
    if body is None:
        return None
    reference = body["content"]["application/json"]["schema"]["$ref"]
    return BODY_MODELS[reference.rpartition("/")[2]]


def value_of(schema: dict[str, Any]) -> Any:
    """Some value that a parameter may have."""
    if schema["type"] == "array":
        return ["one", "two"]
    return {"integer": 7, "boolean": True, "string": "some text"}[schema["type"]]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_a_method_of_both_clients_with_all_its_parameters(operation: str) -> None:
    method, path, described = OPERATIONS[operation]
    function = function_of(operation)
    for client in (Client, AsyncClient):
        assert getattr(client, python_name(operation)).__wrapped__ is function
    parameters = inspect.signature(function).parameters
    asked: dict[str, Any] = {}
    wanted: dict[str, Any] = {}
    for one in described.get("parameters", ()):
        name, value = python_name(one["name"]), value_of(one["schema"])
        assert (parameters[name].default is inspect.Parameter.empty) == (
            one.get("required", False) and one["name"] != "If-Match"
        ), name
        sent = "true" if value is True else value
        if one["name"] == "wait":
            value, sent = 30, "30s"
        asked[name] = value
        wanted[one["name"]] = (one["in"], sent)
    body = body_of(described)
    members: dict[str, Any] = {}
    if body is not None and body.__name__ != "SharedContextPatch":
        for name, field in body.model_fields.items():
            alias = field.alias or name
            assert (
                parameters[python_name(alias)].default is inspect.Parameter.empty
            ) == field.is_required(), alias
            members[alias] = asked[python_name(alias)] = {"some": "value"}
    elif body is not None:
        asked["changes"] = members = {"some": None}
    assert set(asked) == set(parameters)
    request = function(**asked)
    parts = urlsplit(request.target)
    filled = path
    for name, (place, sent) in wanted.items():
        if place == "path":
            filled = filled.replace(f"{{{name}}}", str(sent))
        elif place == "query":
            texts = [str(one) for one in sent] if isinstance(sent, list) else [str(sent)]
            assert parse_qs(parts.query)[name] == texts
        else:
            assert request.headers[name] == str(sent)
    assert (request.method, unquote(parts.path)) == (method, filled)
    if body is None:
        assert request.content in (b"", b"{}")
    else:
        assert json.loads(request.content) == members


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_answer_is_read_as_the_model_that_it_was_written_with(operation: str) -> None:
    function = function_of(operation)
    names = {
        name: "x" if one.default is inspect.Parameter.empty else one.default
        for name, one in inspect.signature(function).parameters.items()
    }
    if operation == "patchSharedContext":
        names["changes"] = {}
    request = function(**names)
    answered = ROUTES[operation].response_model or str
    models = LINES if operation == "whatIf" else get_args(answered) or (answered,)
    assert {model(name) for name in request.answers} == set(models)
    # What a type checker is told is what is read.
    told = inspect.signature(function).return_annotation
    kind, arguments = told.removesuffix("]").split("[", 1)
    named = set(re.split(r" \| ", arguments.split(",")[0]))
    if operation != "whatIf":
        assert named == set(request.answers)
    assert kind == type(request).__name__
    if isinstance(request, PageRequest):
        assert all(name in one.model_fields for one in models for name in request.lists)


def test_no_model_is_named_that_no_operation_reads() -> None:
    read = {name for operation in OPERATIONS for name in _answers(operation)}
    assert set(MODULES) == read - {"str"} | {"EventView"}


def _answers(operation: str) -> tuple[str, ...]:
    answered = ROUTES[operation].response_model or str
    models = LINES if operation == "whatIf" else get_args(answered) or (answered,)
    return tuple(one.__name__ for one in models)


def test_a_command_is_sent_again_only_with_a_key() -> None:
    for operation, (method, _, described) in OPERATIONS.items():
        function = function_of(operation)
        given = {
            name: "x"
            for name, one in inspect.signature(function).parameters.items()
            if one.default is inspect.Parameter.empty
        }
        if operation == "patchSharedContext":
            given["changes"] = {}  # type: ignore[assignment]
        request = function(**given)
        keyed = any(one["name"] == "Idempotency-Key" for one in described.get("parameters", ()))
        assert (request.idempotency_key is not None) == keyed, operation
        repeatable = operation in WITHOUT_KEY - SENT_ONCE
        assert request.again == (method == "GET" or keyed or repeatable), operation


@pytest.mark.parametrize(
    ("told", "shape"),
    [
        (bodies.RequesterObject, RequesterBody),
        (bodies.AttachmentObject, AttachmentBody),
        (bodies.AttachAsObject, AttachAsBody),
        (bodies.TranscriptCutObject, TranscriptChoice),
        (bodies.EntryObject, EntryBody),
        (bodies.UsageObject, UsageBody),
        (bodies.DecisionFilterObject, WhatIfFilter),
    ],
)
def test_an_object_in_a_body_has_the_members_that_the_server_takes(
    told: type[Any], shape: type[BaseModel]
) -> None:
    fields = {one.alias or name: one for name, one in shape.model_fields.items()}
    assert set(get_type_hints(told)) == set(fields)
    assert told.__required_keys__ == {name for name, one in fields.items() if one.is_required()}


def test_a_family_takes_all_that_may_be_said_of_a_spawn() -> None:
    parameters = inspect.signature(runs.spawn).parameters
    optional = {name for name, one in parameters.items() if one.default is None}
    assert set(get_type_hints(bodies.SpawnChoices)) == optional - {"parallel"}
