"""The description of the API as a document."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from application.commands.once import IDEMPOTENCY_KEY_CHARS_MAX
from infrastructure.inbound.http.responses.described import PROBLEM_SCHEMA
from infrastructure.inbound.http.responses.examples import OPERATIONS
from infrastructure.inbound.http.routes.access import PageTokenBody
from infrastructure.inbound.http.routes.control import (
    MessageBody,
    PreambleBody,
    StopBody,
    YieldBody,
)
from infrastructure.inbound.http.routes.sessions import AckBody, RedriveBody
from infrastructure.inbound.http.routes.shared_context import SharedContextPatch
from infrastructure.inbound.http.routes.what_if import LINES, WhatIfBody
from infrastructure.inbound.http.schemas.external_runs import (
    ClaimBody,
    EndBody,
    HeartbeatBody,
    ReportBody,
)
from infrastructure.inbound.http.schemas.respawn import RespawnBody
from infrastructure.inbound.http.schemas.spawn import SpawnBody
from infrastructure.inbound.http.schemas.transcript import TranscriptBody

BODIES: tuple[type[BaseModel], ...] = (
    SpawnBody,
    RespawnBody,
    StopBody,
    PreambleBody,
    YieldBody,
    MessageBody,
    AckBody,
    RedriveBody,
    TranscriptBody,
    SharedContextPatch,
    WhatIfBody,
    ClaimBody,
    HeartbeatBody,
    ReportBody,
    EndBody,
    PageTokenBody,
)
WITHOUT_KEY = frozenset(
    {
        *("whatIf", "claimRun", "prolongClaim", "reportTranscript", "endRun"),
        *("makePageCode", "tradePageCode"),
        *("startVerification", "stopVerification"),
    }
)
"""What may be repeated as it is: it changes nothing, by its epoch and numbers nothing twice, or is
never done twice at once. And what gives a secret, which is kept for no repetition."""

POSITION_HEADERS: dict[str, Any] = {
    "Spawnlog-Log": {
        "description": "Which log the answer is of.",
        "schema": {"type": "string", "format": "uuid"},
    },
    "Spawnlog-Position": {
        "description": "The position at which the answer is true.",
        "schema": {"type": "integer"},
    },
    "Spawnlog-Recorded-At": {
        "description": (
            "When the event at that position was recorded. Before the first event, and while the"
            " database does not tell it, there is none."
        ),
        "schema": {"type": "string", "format": "date-time"},
    },
    "Spawnlog-Clock": {
        "description": (
            "The time by the clock of the log when the answer began. Every instant on record is by"
            " this clock; `Date` is by the clock of the server's machine."
        ),
        "schema": {"type": "string", "format": "date-time"},
    },
}
IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": (
        "The same key with the same body gets the first answer again, with"
        " `Idempotent-Replayed: true`. It counts for one token and path, for seven days."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX},
}


def describe(application: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if application.openapi_schema is None:
        document = get_openapi(
            title=application.title,
            version=application.version,
            openapi_version="3.1.0",
            summary="Control plane and black-box recorder for AI sub-agent runs",
            routes=application.routes,
        )
        components = document.setdefault("components", {})
        components["schemas"] = components.get("schemas", {}) | _schemas()
        components["headers"] = POSITION_HEADERS
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"bearer": []}]
        for path in document["paths"].values():
            for method, operation in path.items():
                _complete(method, operation)
        application.openapi_schema = document
    return application.openapi_schema


def _schemas() -> dict[str, Any]:
    schemas: dict[str, Any] = {"Problem": PROBLEM_SCHEMA}
    for model in (*BODIES, *LINES):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    return schemas


def _of_what_is_sent(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null, which nobody can send: a parameter that may be left
    out is one that is not required. Its limits then stand where every reader looks for them."""
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}


def _complete(method: str, operation: dict[str, Any]) -> None:
    """What all operations have: examples, headers, parameters as they are sent."""
    for response in operation["responses"].values():
        for content in response.get("content", {}).values():
            if "oneOf" in content.get("schema", {}):
                # An answer in lines is taken for one text; each line is one of these.
                content["schema"].pop("type", None)
    if method in ("post", "put") and operation["operationId"] not in WITHOUT_KEY:
        operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _of_what_is_sent(parameter["schema"])
    # Not by the framework, which leaves out of examples what is null; answers have it.
    examples = OPERATIONS[operation["operationId"]]
    if "requestBody" in operation:
        operation["requestBody"]["content"]["application/json"]["example"] = examples["request"]
    for status, response in operation["responses"].items():
        for media_type in {"application/json", "text/plain"} & set(response["content"]):
            if status < "300":
                example = examples.get("responses", {}).get(status, examples["response"])
                response["content"][media_type]["example"] = example
        response["headers"] = {
            name: {"$ref": f"#/components/headers/{name}"} for name in POSITION_HEADERS
        }
