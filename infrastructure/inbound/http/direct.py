"""A short way to the endpoint that is asked most.

The framework finds a route, solves its dependencies and wraps both for every request; for a spawn
that is a third of what HTTP costs. So one endpoint is called here, where nothing is left to find.
The route stays as it is in the application: it describes itself, and takes what comes otherwise.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

Endpoint = Callable[[Request], Awaitable[Response]]
Handlers = Mapping[int | type[Exception], Callable[[Request, Exception], Awaitable[Response]]]


class DirectRoute:
    """Calls `endpoint` for requests of that method and path that have no parameters; its errors
    are answered by the application's own handlers, and what they do not know is raised."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        method: str,
        path: str,
        endpoint: Endpoint,
        handlers: Mapping[Any, Any],
    ) -> None:
        self._app = app
        self._method = method
        self._path = path
        self._endpoint = endpoint
        self._handlers: Handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or pass it on."""
        if not self._matches(scope):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._endpoint(request)
        except Exception as error:
            handler = next(
                (self._handlers[kind] for kind in type(error).__mro__ if kind in self._handlers),
                None,
            )
            if handler is None:
                raise
            response = await handler(request, error)
        await response(scope, receive, send)

    def _matches(self, scope: Scope) -> bool:
        return (
            scope["type"] == "http"
            and scope["path"] == self._path
            and scope["method"] == self._method
            and not scope["query_string"]
        )
