"""How endpoints stand in OpenAPI: the problems each may answer with, with an example of each."""

from collections.abc import Mapping
from typing import Any

from infrastructure.inbound.http.problems import MEDIA_TYPE, TITLES, TYPE_PREFIX

_EVERYWHERE = ("unauthorized", "not_permitted", "foreign_host", "unavailable", "internal")

_DETAILS: Mapping[str, str] = {
    "unauthorized": "send a token as Authorization: Bearer …",
    "not_permitted": 'this token lacks the scope "read"',
    "foreign_host": "this server is not addressed by that name",
    "not_found": "there is no such run",
    "invalid_request": "/task: is required",
    "malformed_json": "the body is not JSON in UTF-8",
    "not_json": "send the body with Content-Type: application/json",
    "too_large": "a request body may have 16777216 bytes at most; send less",
    "unavailable": "the database is away; ask again in a moment",
    "internal": "an internal error; the server's log has the details",
    "not_served_yet": "this release does not serve /attachments; leave it out",
    "spawn_forbidden": "sessions_spawn has reached max active children for this session (5/5)",
    "spawn_error": 'Agent "ghost" is not configured, and no context script named a configured one.',
    "session_closed": "session agent:a:subagent:… has ended and spawns no more",
    "not_started": "the run has not started, so it has no prompt yet",
    "no_announcement": "this run has no announcement to acknowledge",
    "idempotency_in_flight": "a request with this Idempotency-Key is under way; ask again",
    "idempotency_key_reused": "this Idempotency-Key was used for another request",
    "erased": "the text was erased",
    "foreign_cursor": "this cursor is of another log; begin again without it",
}


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The `responses` of an endpoint for these problems and those that every one may have."""
    responses: dict[int | str, dict[str, Any]] = {}
    for code in (*codes, *_EVERYWHERE):
        status, title = TITLES[code]
        entry = responses.setdefault(
            status,
            {
                "description": title,
                "content": {
                    MEDIA_TYPE: {
                        "schema": {"$ref": "#/components/schemas/Problem"},
                        "examples": {},
                    }
                },
            },
        )
        entry["content"][MEDIA_TYPE]["examples"][code] = {"value": _example(code, status, title)}
    return responses


def _example(code: str, status: int, title: str) -> dict[str, Any]:
    return {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "detail": _DETAILS.get(code, title),
        "instance": "/v1/…",
        "code": code,
        "retryable": code in ("idempotency_in_flight", "unavailable"),
    }


def success(example: object, *, status: int = 200, description: str = "Done") -> dict[Any, Any]:
    """The `responses` entry of a success with its example."""
    return {
        status: {
            "description": description,
            "content": {"application/json": {"schema": {"type": "object"}, "example": example}},
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
        "rule": {"type": "string"},
        "limit": {"type": "integer"},
        "current": {"type": "integer"},
        "runId": {"type": "string", "format": "uuid"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
