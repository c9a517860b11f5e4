"""The OpenAPI document."""

import inspect
from functools import cache
from typing import Annotated, Any, get_args

from fastapi import Query
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from application.commands.idempotency import IDEMPOTENCY_KEY_CHARS_MAX
from application.queries.operation import Operation
from domain.values.body import Body
from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.requests.endpoint import VERSION_PATTERN
from infrastructure.inbound.http.requests.event_stream import MEDIA_TYPE as EVENT_STREAM
from infrastructure.inbound.http.requests.lines import MEDIA_TYPE as LINES
from infrastructure.inbound.http.requests.path_parameters import PATH_PARAMETERS
from infrastructure.inbound.http.responses.described import (
    BODY_PROBLEMS,
    KEY_PROBLEMS,
    PROBLEM_SCHEMA,
    endpoint_responses,
    request_body_schema,
)
from infrastructure.inbound.http.responses.examples import example_of

SCHEMAS = "#/components/schemas/"
WITH_KEY = frozenset(row.name for row in OPERATIONS if row.repeat == "key")
POSITION_HEADERS: dict[str, Any] = {
    "Spawnlog-Log": {
        "description": "Id of the log.",
        "schema": {"type": "string", "format": "uuid"},
    },
    "Spawnlog-Position": {
        "description": "Log position of the answer.",
        "schema": {"type": "integer"},
    },
    "Spawnlog-Recorded-At": {
        "description": (
            "Time of the event at that position. Absent before the first event, and if the"
            " database does not respond."
        ),
        "schema": {"type": "string", "format": "date-time"},
    },
    "Spawnlog-Clock": {
        "description": (
            "Time when the answer began, by the clock of the log. All recorded times use this"
            " clock; `Date` uses the clock of the server's machine."
        ),
        "schema": {"type": "string", "format": "date-time"},
    },
}
IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": (
        "A repeat with the same key and body returns the first answer, with"
        " `Idempotent-Replayed: true`. A key is valid for one token and path, for seven days."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX},
}


IF_MATCH: dict[str, Any] = {
    "name": "If-Match",
    "in": "header",
    "required": True,
    "description": "The `ETag` that was read, or `*`.",
    "schema": {"type": "string", "maxLength": 21, "pattern": rf"^(\*|{VERSION_PATTERN})$"},
    "example": '"52"',
}


def documented_route(row: Operation) -> APIRoute:
    """Return a route that only serves to generate the document.

    It has the parameters, answers and problems of an operation. Requests go to `OperationRoute`.
    """

    async def endpoint() -> None:
        raise NotImplementedError("this route is only described")

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=PATH_PARAMETERS[name])
        for name in row.path_arguments
    ]
    if row.query is not None:
        query = Annotated[row.query, Query()]  # type: ignore[name-defined]
        parameters.append(
            inspect.Parameter("query", inspect.Parameter.KEYWORD_ONLY, annotation=query)
        )
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    body = row.body if row.body is not Body else None
    responses = endpoint_responses(
        *row.errors,
        *(BODY_PROBLEMS if row.body is not None else ()),
        *(KEY_PROBLEMS if row.repeat == "key" else ()),
        status=row.status,
        description=row.status_description,
        needs_token=row.token,
    )
    is_text = row.answer is str
    if is_text:
        responses[row.status]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if row.streams:
        example = example_of(row.name, "stream")
        content = {EVENT_STREAM: {"schema": {"type": "string"}, "example": example}}
        responses[row.status]["content"] = content
    if row.lines:
        schema = {"oneOf": [{"$ref": SCHEMAS + model.__name__} for model in get_args(row.answer)]}
        content = {LINES: {"schema": schema, "example": example_of(row.name, "lines")}}
        responses[row.status]["content"] = content
    is_json = not is_text and not row.lines
    return APIRoute(
        row.path,
        endpoint,
        methods=[row.method],
        operation_id=row.name,
        tags=[row.tag],
        summary=row.summary,
        description=row.description,
        response_model=row.answer if is_json else None,
        response_class=JSONResponse if is_json else Response,
        status_code=row.status,
        responses={
            **{status: dict(more) for status, more in row.other_answers.items()},
            **responses,
        },
        openapi_extra={
            **({} if row.token else {"security": []}),
            **({"parameters": [IF_MATCH]} if row.if_match else {}),
            **(request_body_schema(body, required=row.body_required) if body is not None else {}),
        },
    )


@cache
def document() -> dict[str, Any]:
    """Return the document without a version of a server."""
    return _describe("0")


def document_content(version: str) -> bytes:
    """Return the document of this version as it is sent."""
    return bytes(JSONResponse(_describe(version)).body)


def _describe(version: str) -> dict[str, Any]:
    document = get_openapi(
        title="spawnlog",
        version=version,
        openapi_version="3.1.0",
        summary="Control plane and black-box recorder for AI sub-agent runs",
        routes=[documented_route(row) for row in OPERATIONS],
        tags=[{"name": tag} for tag in dict.fromkeys(row.tag for row in OPERATIONS)],
    )
    components = document.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | _schemas()
    components["headers"] = POSITION_HEADERS
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"bearer": []}]
    for path in document["paths"].values():
        for operation in path.values():
            _complete(operation)
    return document


def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {"Problem": PROBLEM_SCHEMA}
    bodies = [row.body for row in OPERATIONS if row.body is not None and row.body is not Body]
    lines = [model for row in OPERATIONS if row.lines for model in get_args(row.answer)]
    for model in (*bodies, *lines):
        schema = model.model_json_schema(ref_template=SCHEMAS + "{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    return schemas


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without null, which cannot be sent.

    An optional parameter is one that is not required. The limits move to the top level, where
    readers look for them.
    """
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}


def _complete(operation: dict[str, Any]) -> None:
    """Add examples, headers, the idempotency key, and parameters as they are sent."""
    if operation["operationId"] in WITH_KEY:
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    # Not by the framework: it drops null members from examples, but answers have them.
    name = operation["operationId"]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]["application/json"]
        content["example"] = example_of(name, "request")
    for status, response in operation["responses"].items():
        for media_type in {"application/json", "text/plain"} & set(response["content"]):
            if status < "300":
                example = example_of(name, "response", status)
                response["content"][media_type]["example"] = example
        response["headers"] = {
            name: {"$ref": f"#/components/headers/{name}"} for name in POSITION_HEADERS
        }
