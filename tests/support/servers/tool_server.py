"""Real MCP server with tools, which notes its callers."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send


class ToolServer:
    """Server with `add`, `fail`, `hang`, `echo`, `long`, and a `sessions_yield` with the real
    tool's result. `url` is the address of its tools.
    """

    def __init__(self) -> None:
        self.url = ""
        self.authorizations: set[str] = set()
        self.hanging = 0
        self.calls: list[str] = []
        from mcp.server import MCPServer

        self._tools = MCPServer("tools")
        self._tools.tool()(self.add)
        self._tools.tool()(self.fail)
        self._tools.tool()(self.hang)
        self._tools.tool()(self.echo)
        self._tools.tool()(self.long)
        self._tools.tool()(self.sessions_yield)
        self._app = self._tools.streamable_http_app(stateless_http=True)

    def add(self, first: int, second: int) -> int:
        """Return the sum."""
        self.calls.append("add")
        return first + second

    def fail(self) -> str:
        """Fail."""
        raise ValueError("the tool is out of order")

    async def hang(self) -> str:
        """Run forever."""
        self.hanging += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.hanging -= 1
        return ""

    def echo(self, text: str) -> str:
        """Return the text."""
        return text

    def long(self, characters: int) -> str:
        """Return a text of this length."""
        return "x" * characters

    def sessions_yield(self) -> dict[str, Any]:
        """End the turn."""
        return {"status": "yielded", "message": "Turn yielded."}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for name, value in scope.get("headers", ()):
            if name == b"authorization":
                self.authorizations.add(value.decode())
        await self._app(scope, receive, send)

    async def serve(self, ready: asyncio.Event | threading.Event, over: asyncio.Event) -> None:
        """Serve until `over` is set."""
        server = uvicorn.Server(
            uvicorn.Config(self, port=0, log_level="error", timeout_graceful_shutdown=1)
        )
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
        ready.set()
        await over.wait()
        server.should_exit = True
        await serving


@asynccontextmanager
async def tool_server() -> AsyncIterator[ToolServer]:
    """Yield a server in this event loop."""
    tools, ready, over = ToolServer(), asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(tools.serve(ready, over))
    await ready.wait()
    try:
        yield tools
    finally:
        over.set()
        await serving


@contextmanager
def tool_server_beside() -> Iterator[ToolServer]:
    """Yield a server in a separate thread."""
    tools, ready = ToolServer(), threading.Event()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(tools.serve(ready, over),))
    thread.start()
    assert ready.wait(10)
    try:
        yield tools
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
