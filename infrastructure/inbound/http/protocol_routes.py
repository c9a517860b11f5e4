"""`/mcp`: who asks is known before the protocol begins."""

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
"""A stream of its own, or an end of a session, asks for what is not there: nothing is pushed."""


class ProtocolEndpoint(Protocol):
    """Speaks the Model Context Protocol with callers that are known."""

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        caller: Caller,
        watch: Callable[[], Callable[[], bool]],
    ) -> None:
        """Answer one request. `watch` is called when its body was read, and gives what tells
        whether the caller is still there."""
        ...


class _AuthenticatedEndpoint:
    """An application of its own: a class, so that the framework leaves the request and its response
    alone."""

    def __init__(self, services: Services, endpoint: ProtocolEndpoint) -> None:
        self._services = services
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await caller_of(Request(scope, receive))
        await self._endpoint.serve(scope, receive, send, caller, lambda: presence_check(scope))


def protocol_routes(services: Services, endpoint: ProtocolEndpoint) -> Sequence[BaseRoute]:
    """The routes with and without a slash at the end: no caller is sent elsewhere."""
    authenticated = _AuthenticatedEndpoint(services, endpoint)
    return [Route(path, authenticated, methods=list(METHODS)) for path in PATHS]
