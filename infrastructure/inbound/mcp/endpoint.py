"""`/mcp`: the Model Context Protocol over streamable HTTP, stateless.

The first request imports the SDK and starts its server; before that the endpoint costs nothing.
"""

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from application.commands.services import CommandServices
from application.queries.access import Caller
from infrastructure.contract.json_values import MalformedJsonError, parse_json
from infrastructure.inbound.mcp.requests import REQUEST, read_request

PARSE_ERROR = -32700
BODY_BYTES_MAX = 16 * 1024 * 1024
_SERVER = "infrastructure.inbound.mcp.server"


class McpEndpoint:
    """ASGI endpoint for authenticated requests."""

    def __init__(self, services: CommandServices) -> None:
        self._services = services
        self._ready: asyncio.Future[Any] | None = None
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def serve(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        caller: Caller,
        watch: Callable[[], Callable[[], bool]],
    ) -> None:
        """Answer one request. Refuse a body that is not storable JSON before the SDK reads it."""
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        request = read_request(scope, caller, watch())
        try:
            parse_json(body, subject="the message")
        except MalformedJsonError as error:
            await _parse_error(error)(scope, receive, send)
            return
        manager = await self._started()
        await manager.handle_request({**scope, REQUEST: request}, _repeat(body, receive), send)

    async def _started(self) -> Any:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready))
        # A disconnecting caller must not cancel the start.
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: "asyncio.Future[Any]") -> None:
        """Run the SDK's session manager. One task must enter and leave its task group."""
        try:
            # In a thread, so that other requests are served during the import.
            module = await asyncio.to_thread(importlib.import_module, _SERVER)
            manager = module.session_manager(self._services, body_bytes_max=BODY_BYTES_MAX)
            async with manager.run():
                ready.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if ready.done():
                raise
            # The waiting requests get the error; the next request tries again.
            self._ready = None
            ready.set_exception(error)
        finally:
            ready.cancel()

    async def close(self) -> None:
        """End the requests that are still being served."""
        self._closing.set()
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving


def _repeat(body: bytes, receive: Receive) -> Receive:
    """Return a receive channel that replays the body before the remaining messages."""
    replayed = False

    async def again() -> Message:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _parse_error(error: MalformedJsonError) -> Response:
    members: dict[str, object] = {"code": PARSE_ERROR, "message": str(error)}
    if error.errors:
        members["data"] = {"errors": list(error.errors)}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": members}, 400)
