"""Helpers of endpoints: services, caller, headers and JSON responses."""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from application.commands.context import known_traceparent
from application.commands.idempotency import reserve
from application.log.envelope import Actor
from application.log.event_log import Reservation
from application.queries.access import ALL_SCOPES, Caller
from application.queries.errors import invalid_value
from application.queries.views.view import Answer, View
from infrastructure.inbound.http.middleware.body_limits import note_owner
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem

ANONYMOUS_CALLER = Caller(actor=Actor(kind="anybody"), scopes=ALL_SCOPES, patterns=("*",))
"""The caller if authentication is off."""


def services_of(request: Request) -> Services:
    services: Services = request.app.services
    return services


async def caller_of(request: Request) -> Caller:
    """Return the caller of a request. Raise a 401 problem if its token is not valid."""
    services = services_of(request)
    if services.tokens is None:
        return ANONYMOUS_CALLER
    caller = await services.tokens.caller_of(token_of(request))
    if caller is None:
        raise HttpProblem("unauthorized", "the token is unknown or revoked, or its run is over")
    note_owner(request.scope, f"{caller.actor.kind}:{caller.actor.token}:{caller.run_id}")
    return caller


def token_of(request: Request) -> str:
    """Return the token of a request. Raise a 401 problem if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise HttpProblem("unauthorized", "send a token as Authorization: Bearer …")
    return token.strip()


def view_response(
    services: Services,
    answer: Answer[View],
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a view as JSON, with its log and position as headers."""
    content = answer.view.json_bytes()
    return _json_response(services, content, answer.position, status=status, headers=headers)


def json_response(
    services: Services,
    body: Any,
    position: int,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return a JSON response, with its log and position as headers."""
    content = orjson.dumps(body, option=orjson.OPT_UTC_Z)
    return _json_response(services, content, position, status=status, headers=headers)


def _json_response(
    services: Services,
    content: bytes,
    position: int,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    return Response(
        content,
        status_code=status,
        media_type="application/json",
        headers={**position_headers(services, position), **(headers or {})},
    )


def position_headers(services: Services, position: int) -> dict[str, str]:
    """Return the headers that every answer has."""
    return {
        "Spawnlog-Log": str(services.work.log.log_id),
        "Spawnlog-Position": str(position),
    }


def header_of(request: Request, name: str) -> str | None:
    """Return a header, or None if it is missing.

    Raises:
        HttpProblem: The header is given twice, so that either value could be meant.
    """
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise invalid_value(f"/headers/{name}", "must be given only once")
    return given[0] if given else None


def reservation_of(request: Request, caller: Caller, raw: bytes) -> Reservation | None:
    """Return the reservation for the request's idempotency key, or None if it has none."""
    key = header_of(request, "Idempotency-Key")
    if key is None:
        return None
    # Not `request.url.path`, in which `%3F` and `%253F` are equal.
    return reserve(caller, request.method, request.scope["path"], key=key, content=raw)


def traceparent_of(request: Request) -> str | None:
    """Return the W3C trace context of a request, or None if it is missing or malformed."""
    return known_traceparent(request.headers.get("traceparent"))
