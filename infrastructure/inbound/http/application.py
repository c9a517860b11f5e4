"""The HTTP application: all endpoints, their middleware and error handlers."""

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send

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
from infrastructure.inbound.http.requests.caller import position_headers
from infrastructure.inbound.http.requests.endpoint import OperationRoute
from infrastructure.inbound.http.requests.event_stream import OpenStreams
from infrastructure.inbound.http.requests.services import Services
from infrastructure.inbound.http.responses.document import ServedDocument
from infrastructure.inbound.http.responses.problems import HttpProblem


class HttpApplication:
    """ASGI application of all endpoints.

    Args:
        services: The services that the endpoints call.
        models: The endpoint of `/mcp`, or None to leave it out.
        page: Routes of the web page's files.
        streams_max: Maximum number of simultaneous event streams.
    """

    def __init__(
        self,
        services: Services,
        models: ProtocolEndpoint | None = None,
        page: Sequence[BaseRoute] = (),
        *,
        streams_max: int,
    ) -> None:
        self.services = services
        self.streams = OpenStreams(streams_max)
        self.routes = (
            Route("/openapi.json", ServedDocument().answer),
            *(protocol_routes(services, models) if models is not None else ()),
            *operation_routes(),
            *page,
        )
        log = services.work.log
        self._guarded = RequestGuard(
            Router(self.routes, redirect_slashes=False),
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
            problem_of=problem_of,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self
        await self._guarded(scope, receive, send)


PROBLEM_CODES: Mapping[type[Exception], str] = {**ERROR_CODES, UserError: "unavailable"}
"""Problem codes of errors whose text is the answer. The nearest class in the MRO counts."""


def problem_of(scope: Scope, error: Exception) -> HttpProblem | None:
    """Return the problem for an error, or None if the error is unexpected."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, QueryError):
        at = error.position
        headers = position_headers(scope["app"].services, at) if at is not None else None
        return HttpProblem(
            error.code, error.detail, errors=error.errors, headers=headers, **error.details
        )
    if isinstance(error, HTTPException):
        return _routing_problem(scope, error)
    if isinstance(error, ClientDisconnect):
        # The caller left while sending its body or while waiting: this answer has no reader.
        return HttpProblem("malformed_json", "the request body is incomplete")
    code = next(
        (PROBLEM_CODES[kind] for kind in type(error).__mro__ if kind in PROBLEM_CODES), None
    )
    if code is None:
        return None
    current = error.current if isinstance(error, ContextMoved) else None
    rule = rules.SPAWN_TOOL.name if isinstance(error, ToolDenied) else None
    return HttpProblem(code, str(error), current=current, rule=rule)


def _routing_problem(scope: Scope, error: HTTPException) -> HttpProblem:
    headers = dict(error.headers or {})
    if error.status_code == METHOD_NOT_ALLOWED:
        headers["Allow"] = allowed = _allowed(scope, headers["Allow"])
        text = f"method {scope['method']} is not allowed; allowed: {allowed}"
        return HttpProblem("method_not_allowed", text, headers=headers)
    text = "unknown path; /openapi.json lists all paths"
    return HttpProblem("not_found", text, headers=headers)


def _allowed(scope: Scope, of_one_route: str) -> str:
    """Return the methods of all routes of a path; the framework names those of one route."""
    methods = set(of_one_route.split(", "))
    for route in scope["app"].routes:
        if isinstance(route, OperationRoute) and route.matches(scope)[0] != Match.NONE:
            methods.add(route.operation.method)
    return ", ".join(sorted(methods))
