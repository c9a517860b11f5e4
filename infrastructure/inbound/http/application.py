"""The HTTP application: every endpoint, and what is the same for all of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from application.commands.errors import ERROR_CODES
from application.queries.errors import QueryError
from domain.session.decide import ContextMoved
from domain.values import rules
from domain.values.refusals import ToolDenied
from infrastructure.contract.errors import UserError
from infrastructure.inbound.http.middleware.positions import PositionHeaders
from infrastructure.inbound.http.middleware.request_guard import METHOD_NOT_ALLOWED, RequestGuard
from infrastructure.inbound.http.operations import is_essential, operation_routes
from infrastructure.inbound.http.protocol_routes import ProtocolEndpoint, protocol_routes
from infrastructure.inbound.http.requests.caller import position_headers, services_of
from infrastructure.inbound.http.requests.endpoint import OperationRoute
from infrastructure.inbound.http.requests.event_stream import OpenStreams
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.document import ServedDocument
from infrastructure.inbound.http.responses.problems import (
    HttpProblem,
    problem_response,
)


def create_application(
    services: Services,
    models: ProtocolEndpoint | None = None,
    page: Sequence[BaseRoute] = (),
    *,
    streams_max: int,
) -> Starlette:
    """The application, ready to serve. `models` answers at `/mcp`, `page` are routes of files,
    `streams_max` is how many event streams are served at once."""
    application = Starlette(
        routes=[
            Route("/openapi.json", ServedDocument().answer),
            *(protocol_routes(services, models) if models is not None else ()),
            *operation_routes(),
            *page,
        ],
        exception_handlers=_handlers(),
    )
    application.router.redirect_slashes = False
    application.state.services = services
    application.state.streams = OpenStreams(streams_max)
    log = services.work.log
    application.add_middleware(
        RequestGuard,
        hosts=services.hosts,
        marks=PositionHeaders(
            str(log.log_id),
            log.head,
            lambda: services.tail.position,
            known=log.known_instant,
            recorded_at=log.recorded_at,
            now=log.now,
        ),
        on_answer=services.measurements.requests.take,
        is_essential=is_essential,
    )
    return application


PROBLEM_CODES: Mapping[type[Exception], str] = {**ERROR_CODES, UserError: "unavailable"}
"""The problem of an error whose text is the answer; that of the nearest class counts."""


def _handlers() -> dict[int | type[Exception], Any]:
    return {
        **{kind: _handler(code) for kind, code in PROBLEM_CODES.items()},
        HttpProblem: _handle_problem,
        QueryError: _handle_query_error,
        HTTPException: _handle_http_exception,
        ClientDisconnect: _handle_disconnect,
    }


def _handler(code: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        current = error.current if isinstance(error, ContextMoved) else None
        rule = rules.SPAWN_TOOL.name if isinstance(error, ToolDenied) else None
        problem = HttpProblem(code, str(error), current=current, rule=rule)
        return problem_response(problem, request.scope)

    return handle


async def _handle_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HttpProblem)
    return problem_response(problem, request.scope)


async def _handle_query_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueryError)
    at = error.position
    headers = position_headers(services_of(request), at) if at is not None else None
    problem = HttpProblem(
        error.code, error.detail, errors=error.errors, headers=headers, **error.details
    )
    return problem_response(problem, request.scope)


async def _handle_disconnect(request: Request, _: Exception) -> Response:
    # It left in the middle of its body, or of a wait, so nobody reads this.
    return problem_response(HttpProblem("malformed_json", "the body is incomplete"), request.scope)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == METHOD_NOT_ALLOWED:
        headers["Allow"] = allowed = _allowed(request, headers["Allow"])
        text = f"this path does not take {request.method}; it takes {allowed}"
        problem = HttpProblem("method_not_allowed", text, headers=headers)
    else:
        text = "there is nothing here; see /openapi.json for what there is"
        problem = HttpProblem("not_found", text, headers=headers)
    return problem_response(problem, request.scope)


def _allowed(request: Request, of_one_route: str) -> str:
    """The methods of a path: it may have several routes, and the framework names those of one."""
    methods = set(of_one_route.split(", "))
    for route in request.app.routes:
        if isinstance(route, OperationRoute) and route.matches(request.scope)[0] != Match.NONE:
            methods.add(route.operation.method)
    return ", ".join(sorted(methods))
