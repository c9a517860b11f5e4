"""OpenAPI descriptions of requests, responses and problems."""

from typing import Any

from pydantic import BaseModel

from domain.spawn.stages import RULE_NAMES
from infrastructure.inbound.http.responses.examples import PROBLEMS
from infrastructure.inbound.http.responses.problems import (
    MEDIA_TYPE,
    RETRYABLE,
    TITLES,
    TYPE_PREFIX,
)

BODY_PROBLEMS = ("malformed_json", "not_json", "too_large", "bodies_busy", "too_slow")
KEY_PROBLEMS = ("idempotency_in_flight", "idempotency_key_reused")
_COMMON_PROBLEMS = (
    "invalid_request",
    "foreign_host",
    "foreign_origin",
    "target_too_long",
    "headers_too_large",
    "unavailable",
    "internal",
)
_TOKEN_PROBLEMS = ("unauthorized", "not_permitted")


def endpoint_responses(
    *problems: str, status: int = 200, description: str = "Done", needs_token: bool = True
) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of an endpoint: success, these problems, and the common ones.

    The schema of the success is not included: it is the `response_model`.
    """
    responses: dict[int | str, dict[str, Any]] = {status: {"description": description}}
    for code in (*problems, *(_TOKEN_PROBLEMS if needs_token else ()), *_COMMON_PROBLEMS):
        code_status, title = TITLES[code]
        entry = responses.setdefault(code_status, _problem_response(title))
        example = {"value": _problem_example(code, code_status, title)}
        entry["content"][MEDIA_TYPE]["examples"][code] = example
    return responses


def _problem_response(title: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        "description": title,
        "content": {MEDIA_TYPE: {"schema": schema, "examples": {}}},
    }


def request_body_schema(model: type[BaseModel], *, required: bool = False) -> dict[str, Any]:
    """Return the `openapi_extra` of an endpoint with a body of this model."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": required, "content": content}}


def _problem_example(code: str, status: int, title: str) -> dict[str, Any]:
    waits = {"retryAfterMs": 1000} if code in RETRYABLE else {}
    return {
        **waits,
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": PROBLEMS.get(code, title),
        "instance": "/v1/…",
        "code": code,
        "retryable": code in RETRYABLE,
    }


PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "RFC 9457 problem details with a stable code.",
    "required": ["type", "title", "status", "detail", "instance", "code", "retryable"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "code": {"type": "string", "enum": sorted(TITLES)},
        "retryable": {"type": "boolean"},
        "rule": {"type": "string", "enum": [*RULE_NAMES]},
        "limit": {"type": "integer"},
        "current": {"type": "integer"},
        "runId": {"type": "string", "format": "uuid"},
        "childSessionKey": {"type": "string"},
        "batchId": {"type": "string", "format": "uuid"},
        "retryAfterMs": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
