"""Problems in the form of RFC 9457: a description and a stable code."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Scope

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:spawnlog:problem:"
TITLES: Mapping[str, tuple[int, str]] = {
    "unauthorized": (401, "Authentication required"),
    "not_permitted": (403, "Not permitted"),
    "foreign_host": (403, "Unknown host name"),
    "foreign_origin": (403, "Cross-origin request refused"),
    "spawn_forbidden": (403, "The spawn is not permitted"),
    "spawn_error": (422, "The spawn cannot be prepared"),
    "not_found": (404, "Not found"),
    "method_not_allowed": (405, "Method not allowed"),
    "session_closed": (409, "The session is closed or its run is over"),
    "transcript_is_kept_here": (409, "The transcript is recorded here"),
    "run_active": (409, "The run is not done"),
    "queue_full": (409, "Too many queued messages"),
    "cannot_yield": (409, "The run cannot yield"),
    "steered_too_soon": (429, "Steered too often"),
    "bodies_busy": (429, "Too many large requests at once"),
    "too_slow": (408, "The request body timed out"),
    "what_if_busy": (429, "Too many what-if requests at once"),
    "no_session": (409, "The run has no session"),
    "too_much_told": (409, "Too many transcript uploads for the session"),
    "cannot_respawn": (409, "The run cannot be respawned"),
    "not_started": (409, "The run has not started"),
    "no_announcement": (409, "The run has no announcement"),
    "not_external": (409, "The run is not external"),
    "not_offered": (409, "The run cannot be claimed yet"),
    "claimed_elsewhere": (409, "Another executor has claimed the run"),
    "claim_over": (409, "The claim has expired"),
    "run_over": (409, "The run is over"),
    "transcript_gap": (409, "Earlier entries are missing"),
    "idempotency_in_flight": (409, "The same request is in progress"),
    "precondition_failed": (412, "The shared context has changed"),
    "foreign_cursor": (410, "The cursor belongs to another log"),
    "too_large": (413, "The request is too large"),
    "target_too_long": (414, "The URL is too long"),
    "headers_too_large": (431, "The headers are too large"),
    "not_json": (415, "The body is not JSON"),
    "malformed_json": (400, "The body is malformed"),
    "invalid_request": (422, "The request is invalid"),
    "not_served_yet": (422, "Not supported yet"),
    "idempotency_key_reused": (422, "The idempotency key was used for another request"),
    "erased": (410, "The text was erased"),
    "unavailable": (503, "Not ready"),
    "internal": (500, "Internal error"),
}
RETRYABLE = frozenset(
    {
        "idempotency_in_flight",
        "run_active",
        "not_offered",
        "queue_full",
        "bodies_busy",
        "too_slow",
        "steered_too_soon",
        "what_if_busy",
        "unavailable",
    }
)


class HttpProblem(Exception):
    """Error that is answered with a problem. `more` are members besides the standard ones."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status, self.title = TITLES[code]
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.more = {name: value for name, value in more.items() if value is not None}

    def body(self, instance: str) -> dict[str, Any]:
        """Return the members of the problem."""
        body: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "retryable": self.code in RETRYABLE,
            **self.more,
        }
        if self.errors:
            body["errors"] = [dict(error) for error in self.errors]
        return body


def problem_response(problem: HttpProblem, scope: Scope) -> Response:
    """Return the response with a problem, for the request of `scope`."""
    headers = dict(problem.headers)
    body = problem.body(scope["raw_path"].decode("latin-1"))
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.code in RETRYABLE:
        headers.setdefault("Retry-After", "1")
    if "Retry-After" in headers:
        body["retryAfterMs"] = int(headers["Retry-After"]) * 1000
    return Response(
        orjson.dumps(body),
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )
