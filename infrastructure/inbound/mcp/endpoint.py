"""`/mcp`: the Model Context Protocol over streamable HTTP, stateless. The SDK is imported and its
server made when somebody asks for the first time: until then it costs nothing."""

import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import orjson
from starlette.types import Message, Receive, Scope, Send

from application.commands.services import CommandServices
from application.queries.access import Caller
from infrastructure.contract.json_values import MalformedJson, parse_json
from infrastructure.inbound.mcp.requests import REQUEST, read_request

PARSE_ERROR = -32700
BODY_BYTES_MAX = 16 * 1024 * 1024
_SERVER = "infrastructure.inbound.mcp.server"


class McpEndpoint:
    """Takes requests whose caller is known."""

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
        """Answer one request. Its body is looked through before the SDK reads it: what cannot be
        kept in a record does not come in."""
        body = await _read_body(receive)
        if body is None:
            return
        request = read_request(scope, caller, watch())
        try:
            parse_json(body, what="the message")
        except MalformedJson as error:
            await _send_parse_error(send, error)
            return
        manager = await self._started()
        scope = {**scope, REQUEST: request}
        await manager.handle_request(scope, _repeat(body, receive), send)

    async def _started(self) -> Any:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready))
        # A caller that leaves ends its own waiting, and not the start.
        return await asyncio.shield(self._ready)

    async def _serve(self, ready: "asyncio.Future[Any]") -> None:
        """Keep the SDK's session manager: its task group is left by the task that entered it."""
        try:
            # Aside: meanwhile the others are served.
            module = await asyncio.to_thread(importlib.import_module, _SERVER)
            manager = module.session_manager(self._services, body_bytes_max=BODY_BYTES_MAX)
            async with manager.run():
                ready.set_result(manager)
                await self._closing.wait()
        except Exception as error:
            if ready.done():
                raise
            # Told to who waits; the next one tries again.
            self._ready = None
            ready.set_exception(error)
        finally:
            ready.cancel()

    async def close(self) -> None:
        """End what is still asked."""
        self._closing.set()
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body; None when the caller left before its end."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _repeat(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, then what comes behind it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _send_parse_error(send: Send, error: MalformedJson) -> None:
    members: dict[str, object] = {"code": PARSE_ERROR, "message": str(error)}
    if error.errors:
        members["data"] = {"errors": list(error.errors)}
    message = {"jsonrpc": "2.0", "id": None, "error": members}
    await send(
        {
            "type": "http.response.start",
            "status": 400,
            "headers": [(b"content-type", b"application/json")],
        }
    )
    await send({"type": "http.response.body", "body": orjson.dumps(message)})
