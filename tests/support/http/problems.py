"""Checks that every problem response must pass."""

from typing import Any

import httpx2

from infrastructure.inbound.http.middleware.positions import HEAD_SECONDS_MAX

MEMBERS = {
    "type": str,
    "title": str,
    "status": int,
    "detail": str,
    "instance": str,
    "code": str,
    "retryable": bool,
}
OTHERS = {
    "rule": str,
    "limit": int,
    "current": int,
    "runId": str,
    "childSessionKey": str,
    "retryAfterMs": int,
    "errors": list,
}


def problem_of(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Return the body of a problem response; assert everything that all problems share."""
    assert response.status_code == status, response.text[:2000]
    body = well_formed_problem(response)
    assert body["code"] == code, body
    return body


def well_formed_problem(response: httpx2.Response) -> dict[str, Any]:
    """Return the body of a response; assert that it is a complete problem."""
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["spawnlog-log"]
    position = response.headers.get("spawnlog-position")
    if position is None:
        # An answer that has not read the log waits only so long for the position.
        assert response.elapsed.total_seconds() >= HEAD_SECONDS_MAX, response.headers
    else:
        assert position.isdigit()
    body = response.json()
    for name, kind in MEMBERS.items():
        assert isinstance(body.get(name), kind), f"{name} in {body}"
    known = {**MEMBERS, **OTHERS}
    for name, value in body.items():
        assert name in known, f"{name} is no member of problems"
        assert isinstance(value, known[name]), f"{name} in {body}"
    assert body["status"] == response.status_code
    assert body["type"].endswith(f":{body['code']}")
    assert body["detail"].strip()
    for error in body.get("errors", ()):
        assert error["detail"].strip()
        assert error["pointer"] == "" or error["pointer"].startswith("/"), body
    return dict(body)


def pointers_of(body: dict[str, Any]) -> list[str]:
    """Return the pointers to the faults of a problem."""
    return [error["pointer"] for error in body.get("errors", ())]
