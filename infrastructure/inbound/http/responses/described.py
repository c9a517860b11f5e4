"""How endpoints stand in OpenAPI: what each takes and answers, with an example of everything."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from domain.values.rules import RULE_NAMES
from infrastructure.inbound.http.responses.problems import (
    MEDIA_TYPE,
    RETRYABLE,
    TITLES,
    TYPE_PREFIX,
)

BODY_PROBLEMS = ("malformed_json", "not_json", "too_large")
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
_DETAILS: Mapping[str, str] = {
    "unauthorized": "send a token as Authorization: Bearer …",
    "not_permitted": 'this token lacks the scope "read"',
    "foreign_host": "this server is not addressed by that name",
    "foreign_origin": "requests from pages of other sites are refused",
    "target_too_long": "a URL may have 16384 bytes at most",
    "headers_too_large": "all headers may have 65536 bytes at most",
    "not_found": "there is no such run",
    "invalid_request": "/task: is required",
    "malformed_json": "the body is not JSON in UTF-8",
    "not_json": "send the body with Content-Type: application/json",
    "too_large": "a request body may have 16777216 bytes at most; send less",
    "unavailable": "the database is away; ask again in a moment",
    "internal": "an internal error; the server's log has the details",
    "not_served_yet": (
        "this release does not serve /mode steer; wait for the run, or stop it and spawn again"
    ),
    "spawn_forbidden": "sessions_spawn has reached max active children for this session (5/5)",
    "spawn_error": 'Agent "ghost" is not configured, and no context script named a configured one.',
    "session_closed": (
        "session agent:a:subagent:… is closed and spawns no more; ask from the session that spawned"
        " it"
    ),
    "too_much_told": (
        "1073741824 bytes were told of session agent:main:main so far, and 1073741824 are kept at"
        " most, for the past is kept: go on with another session, or spawn without telling more"
    ),
    "transcript_is_kept_here": (
        "session agent:a:subagent:… was spawned here, and its transcript is kept here"
    ),
    "run_active": (
        "run … of this session is not announced yet; wait for it (wait=30s&until=announced), then"
        " send the message again"
    ),
    "no_session": "run … has no session that could be continued",
    "not_started": "the run has not started, so it has no prompt yet",
    "no_announcement": "this run has no announcement to acknowledge",
    "idempotency_in_flight": "a request with this Idempotency-Key is under way; ask again",
    "idempotency_key_reused": "this Idempotency-Key was used for another request",
    "precondition_failed": "the shared context is at version 52 by now; read it and patch that",
    "erased": "the text was erased",
    "foreign_cursor": "this cursor is of another log; begin again without it",
}


def problem_responses(*codes: str, needs_token: bool = True) -> dict[int | str, dict[str, Any]]:
    """The `responses` of an endpoint for these problems and those that every one may have."""
    responses: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, *(_TOKEN_PROBLEMS if needs_token else ()), *_COMMON_PROBLEMS):
        status, title = TITLES[code]
        entry = responses.setdefault(status, _problem_response(title))
        entry["content"][MEDIA_TYPE]["examples"][code] = {"value": _example(code, status, title)}
    return responses


def _problem_response(title: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        "description": title,
        "content": {MEDIA_TYPE: {"schema": schema, "examples": {}}},
    }


def request_body_schema(
    model: type[BaseModel], example: object, *, required: bool = False
) -> dict[str, Any]:
    """The `openapi_extra` of an endpoint with a body of this shape."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": required, "content": content}}


def _example(code: str, status: int, title: str) -> dict[str, Any]:
    waits = {"retryAfterMs": 1000} if code in RETRYABLE else {}
    return {
        **waits,
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": _DETAILS.get(code, title),
        "instance": "/v1/…",
        "code": code,
        "retryable": code in RETRYABLE,
    }


def success_response(
    example: object, *, status: int = 200, description: str = "Done"
) -> dict[Any, Any]:
    """The `responses` entry of a success with its example; its schema is the `response_model`."""
    return {
        status: {
            "description": description,
            "content": {"application/json": {"example": example}},
        }
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
