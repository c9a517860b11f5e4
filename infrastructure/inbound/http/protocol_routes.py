"""Routes of `/mcp`. The caller is authenticated before the protocol begins."""

from collections.abc import Callable, Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from application.queries.access import Caller
from infrastructure.inbound.http.middleware.disconnects import presence_check
from infrastructure.inbound.http.requests.caller import caller_of
from infrastructure.inbound.http.requests.services import Services

PATHS = ("/mcp", "/mcp/")
METHODS = ("POST",)
"""`GET` and `DELETE` are not served: there are no server streams and no sessions to end."""


class ProtocolEndpoint(Protocol):
    """Endpoint that speaks the Model Context Protocol with authenticated callers."""

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        caller: Caller,
        watch: Callable[[], Callable[[], bool]],
    ) -> None:
        """Answer one request.

        `watch` is called after the body was read. It returns a function that returns False once the
        caller has left.
        """
        ...


class _AuthenticatedEndpoint:
    """ASGI application that authenticates. A class, to get the raw request from the framework."""

    def __init__(self, services: Services, endpoint: ProtocolEndpoint) -> None:
        self._services = services
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await caller_of(Request(scope, receive))
        await self._endpoint.serve(scope, receive, send, caller, lambda: presence_check(scope))


def protocol_routes(services: Services, endpoint: ProtocolEndpoint) -> Sequence[BaseRoute]:
    """Return the routes with and without a trailing slash, so that no caller is redirected."""
    authenticated = _AuthenticatedEndpoint(services, endpoint)
    return [Route(path, authenticated, methods=list(METHODS)) for path in PATHS]
