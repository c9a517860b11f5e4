"""Check of responses against the OpenAPI description, for every client of a test server.

A member that is not described is an error here, though not for callers.
"""

import re
import threading
from functools import cache
from typing import Any

import httpx2
import orjson
from jsonschema_rs import Draft202012Validator

from infrastructure.inbound.http import openapi

JSON = "application/json"
LINES = "application/x-ndjson"
_making = threading.Lock()


def document() -> dict[str, Any]:
    """Return the description, without a server.

    Several threads may request it at once. One of them makes it, because pydantic warns if others
    use its models meanwhile.
    """
    with _making:
        return _document()


@cache
def _document() -> dict[str, Any]:
    return openapi.document()


def check_answer(response: httpx2.Response) -> None:
    """Fail unless a JSON answer of a described operation is one of its successes, whole. An answer
    that is no success is a problem, which other tests look at."""
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if not response.is_success or media_type not in (JSON, LINES):
        return
    path = response.request.url.raw_path.decode().partition("?")[0]
    described = described_path(path)
    if described is None or (media_type == LINES and not response.is_closed):
        return
    response.read()
    bodies = (
        map(orjson.loads, response.content.splitlines())
        if media_type == LINES
        else [response.json()]
    )
    for body in bodies:
        require_fit(described, response.request.method.lower(), response.status_code, body)


def require_fit(path: str, method: str, status: int, body: Any) -> None:
    """Assert that a body is as the operation describes it for this status."""
    faults = _validator(path, method, status).iter_errors(body)
    wrong = [f"{'.'.join(map(str, fault.instance_path))}: {fault.message}" for fault in faults]
    assert not wrong, f"{method} {path} {status} is not as described: {'; '.join(wrong[:5])}"


def described_path(path: str) -> str | None:
    """Return the described path that matches, or None."""
    return next((route for route, pattern in _patterns() if pattern.fullmatch(path)), None)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (path, re.compile(re.sub(r"{\w+}", "[^/]+", path))) for path in document()["paths"]
    )


@cache
def _validator(path: str, method: str, status: int) -> Draft202012Validator:
    content = document()["paths"][path][method]["responses"][str(status)]["content"]
    described = content.get(JSON) or content[LINES]
    schema = {**described["schema"], "components": {"schemas": _closed_schemas()}}
    return Draft202012Validator(schema, validate_formats=True)


@cache
def _closed_schemas() -> dict[str, Any]:
    """Return the schemas, closed to members that they do not name."""
    return {
        name: {"additionalProperties": False, **schema} if "properties" in schema else schema
        for name, schema in document()["components"]["schemas"].items()
    }
