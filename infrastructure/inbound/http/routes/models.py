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
METHODS = ("POST", "GET", "DELETE")


class ModelDoor(Protocol):
    """Speaks the Model Context Protocol with callers that are known."""

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        caller: Caller,
        caller_is_there: Callable[[], bool],
    ) -> None:
        """Answer one request."""
        ...


class _ModelEndpoint:
    """The door as an application of its own: a class, so that the framework leaves the request and
    its response alone."""

    def __init__(self, services: Services, door: ModelDoor) -> None:
        self._services = services
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await caller_of(Request(scope, receive))
        await self._door.serve(scope, receive, send, caller, presence_check(scope))


def model_routes(services: Services, door: ModelDoor) -> Sequence[BaseRoute]:
    """The routes of the door, with and without a slash at the end: no caller is sent elsewhere."""
    endpoint = _ModelEndpoint(services, door)
    return [Route(path, endpoint, methods=list(METHODS)) for path in PATHS]
