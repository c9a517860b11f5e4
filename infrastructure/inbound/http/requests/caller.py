"""What every endpoint asks of a request: its doors, its caller, what it is about."""

import hashlib
import re
from typing import Annotated, Any, get_origin

import orjson
from fastapi import Depends, Path, Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant

from application.commands.once import require_usable_key
from application.log.envelope import Actor
from application.log.event_log import Reservation
from application.queries.access import ALL_SCOPES, Caller
from application.queries.errors import invalid_value
from application.queries.views.view import Answer, View
from application.queries.wait import reach_position
from infrastructure.inbound.http.middleware.body_limits import note_owner
from infrastructure.inbound.http.requests.parameters import RUN_ID_SCHEMA, MinPosition
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.problems import HttpProblem

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
ANONYMOUS_CALLER = Caller(actor=Actor(kind="anybody"), scopes=ALL_SCOPES, patterns=("*",))
"""Who asks when authentication is switched off."""


def services_of(request: Request) -> Services:
    """What the endpoints work with."""
    services: Services = request.app.state.services
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


async def caller_with_known_parameters(request: Request) -> Caller:
    """Who asks; 422 when it asks with parameters that the endpoint does not have, or says twice
    what may be said once. A parameter that may be repeated is declared as a tuple."""
    caller = await caller_of(request)
    declared = parameters_of(request.scope["route"].dependant)
    for name in request.query_params:
        if name not in declared:
            raise HttpProblem(
                "invalid_request",
                f"there is no parameter {name[:100]} here; there is"
                f" {', '.join(declared) or 'none'}",
                errors=({"pointer": f"/query/{name[:100]}", "detail": "unknown parameter"},),
            )
        is_repeated = len(request.query_params.getlist(name)) > 1
        if is_repeated and get_origin(declared[name].field_info.annotation) is not tuple:
            raise invalid_value(f"/query/{name}", "may be given once only")
    return caller


def parameters_of(dependant: Dependant) -> dict[str, ModelField]:
    """Those of the endpoint, and of what it depends on."""
    declared = {one.alias: one for one in dependant.query_params}
    for below in dependant.dependencies:
        declared |= parameters_of(below)
    return declared


async def _request_services(request: Request) -> Services:
    """Not a plain function: one would be called in a thread of its own for every request."""
    return services_of(request)


InjectedServices = Annotated[Services, Depends(_request_services)]
ByCaller = Annotated[Caller, Depends(caller_with_known_parameters)]


async def _reach_min_position(
    services: InjectedServices, _: ByCaller, minPosition: MinPosition = None
) -> None:
    if minPosition is not None:
        await reach_position(services, minPosition)


AT_POSITION = [Depends(_reach_min_position)]
"""For reads: they are answered once the position that their caller names is known here."""


RunInPath = Annotated[str, Path(description="The run's id.", json_schema_extra=RUN_ID_SCHEMA)]


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


def reservation_of(request: Request, caller: Caller, raw: bytes) -> Reservation | None:
    """The idempotency key of a request, if it sent one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    require_usable_key(key)
    return Reservation(
        token=caller.actor.token or caller.actor.kind,
        method=request.method,
        path=request.url.path,
        key=key,
        fingerprint=hashlib.sha256(raw).digest(),
    )


def traceparent_of(request: Request) -> str | None:
    """The W3C trace context of a request; one that is malformed is left out."""
    value = request.headers.get("traceparent", "").strip().lower()
    return value if _TRACEPARENT.fullmatch(value) else None
