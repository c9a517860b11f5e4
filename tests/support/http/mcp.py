"""Model Context Protocol from the client's side: the SDK's client over both transports, and single
messages.
"""

import itertools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import httpx2

from tests.support.http.wire import client_of
from tests.support.servers.server import MAIN

if TYPE_CHECKING:
    import mcp

Transport = Literal["http", "stdio"]
Mode = Literal["legacy", "auto"]
VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
_IDS = itertools.count(1)


def message_of(method: str, **params: Any) -> dict[str, Any]:
    """Return a request message, from a caller without extensions unless `_meta` adds some."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        **params.pop("_meta", {}),
    }
    params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": next(_IDS), "method": method, "params": params}


def headers_of(method: str) -> dict[str, str]:
    """Return the headers that a request needs."""
    return {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }


@asynccontextmanager
async def mcp_client(
    url: str,
    token: str,
    *,
    transport: Transport = "http",
    mode: Mode = "auto",
    session: str | None = None,
) -> "AsyncIterator[mcp.Client]":
    """Yield the connected client of the SDK, which is imported late because it is large."""
    import mcp
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    if transport == "stdio":
        arguments = ["-m", MAIN, "mcp", "--url", url]
        arguments += ["--session", session] if session else []
        program = StdioServerParameters(
            command=sys.executable, args=arguments, env={"SPAWNLOG_TOKEN": token}
        )
        async with mcp.Client(program, mode=mode) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {token}"}
    headers |= {"Spawnlog-Session": session} if session else {}
    async with httpx2.AsyncClient(
        headers=headers, timeout=60, verify=False, trust_env=False
    ) as http:
        async with mcp.Client(
            streamable_http_client(f"{url}/mcp", http_client=http), mode=mode
        ) as client:
            yield client


async def values_of(client: "mcp.Client", tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the structured result of a tool."""
    from mcp_types import CallToolResult

    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


class McpCaller:
    """Sender of single messages, also those that the SDK's client would not send."""

    def __init__(
        self, url: str, token: str, *, session: str | None = None, tasks: bool = False
    ) -> None:
        self._url, self._token = url, token
        self._headers = {"Spawnlog-Session": session} if session is not None else {}
        self._capabilities: dict[str, Any] = {"extensions": {TASKS: {}}} if tasks else {}

    def post(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str | None] | None = None,
        **meta: Any,
    ) -> httpx2.Response:
        """Return the answer to a raw request with these headers; None omits a header."""
        params = dict(params or {})
        name = next((params[text] for text in ("name", "uri", "taskId") if text in params), None)
        params["_meta"] = {
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
            **meta,
        }
        sent: dict[str, str | None] = {**headers_of(method)}
        if isinstance(name, str) and name.isascii() and name.isprintable():
            sent["Mcp-Name"] = name
        sent |= headers or {}
        message = message_of(method, **params)
        given = {name: value for name, value in sent.items() if value is not None}
        return self.send(json.dumps(message).encode("ascii"), given)

    def send(self, content: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        """Return the answer to a raw body."""
        kind = {"Content-Type": "application/json"}
        with client_of(self._url, self._token) as http:
            whole = {**kind, **self._headers, **headers}
            coded = {name.encode(): value.encode() for name, value in whole.items()}
            return http.post("/mcp", content=content, headers=coded)

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, **meta: Any
    ) -> dict[str, Any]:
        """Return the `result` or `error` of a request."""
        response = self.post(method, params, **meta)
        if response.headers["content-type"].startswith("text/event-stream"):
            events = [
                line.removeprefix("data: ")
                for line in response.text.splitlines()
                if line.startswith("data: ")
            ]
            return dict(json.loads(events[-1]))
        return dict(response.json())

    def call(self, tool: str, meta: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
        """Return the raw result of a tool."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments}, **(meta or {}))
        assert "result" in answer, answer
        return answer["result"]

    def values(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the structured result of a tool."""
        return dict(self.call(tool, **arguments)["structuredContent"])
