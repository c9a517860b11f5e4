"""What every endpoint asks of a request: its doors, its caller, what it is about."""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from application.commands.context import known_traceparent
from application.commands.once import reserve
from application.log.envelope import Actor
from application.log.event_log import Reservation
from application.queries.access import ALL_SCOPES, Caller
from application.queries.errors import invalid_value
from application.queries.views.view import Answer, View
from infrastructure.inbound.http.middleware.body_limits import note_owner
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem

ANONYMOUS_CALLER = Caller(actor=Actor(kind="anybody"), scopes=ALL_SCOPES, patterns=("*",))
"""Who asks when authentication is switched off."""


def services_of(request: Request) -> Services:
    """What the endpoints work with."""
    services: Services = request.app.services
    return services


async def caller_of(request: Request) -> Caller:
    """Who asks; 401 without a good token."""
    services = services_of(request)
    if services.tokens is None:
        return ANONYMOUS_CALLER
    caller = await services.tokens.caller_of(token_of(request))
    if caller is None:
        raise HttpProblem("unauthorized", "this token is unknown, or its run is over")
    note_owner(request.scope, f"{caller.actor.kind}:{caller.actor.token}:{caller.run_id}")
    return caller


def token_of(request: Request) -> str:
    """The token that was sent; 401 without one."""
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
    """A view as JSON, marked with the log and the position it is true at."""
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
    """A JSON answer, marked with the log and the position it is true at."""
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
    """The headers that every answer carries."""
    return {
        "Spawnlog-Log": str(services.work.log.log_id),
        "Spawnlog-Position": str(position),
    }


def header_of(request: Request, name: str) -> str | None:
    """Return the header of this name; None without one. Refuse one that is given twice: either
    value could be meant."""
    given = request.headers.getlist(name)
    if len(given) > 1:
        raise invalid_value(f"/headers/{name}", "may be given once only")
    return given[0] if given else None


def reservation_of(request: Request, caller: Caller, raw: bytes) -> Reservation | None:
    """The idempotency key of a request, if it sent one."""
    key = header_of(request, "Idempotency-Key")
    if key is None:
        return None
    # Not `request.url.path`, in which `%3F` and `%253F` are the same.
    return reserve(caller, request.method, request.scope["path"], key=key, content=raw)


def traceparent_of(request: Request) -> str | None:
    """The W3C trace context of a request; one that is malformed is left out."""
    return known_traceparent(request.headers.get("traceparent"))
