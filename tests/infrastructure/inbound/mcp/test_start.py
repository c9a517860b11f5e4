"""The protocol is loaded once, also if the first caller has left."""

import asyncio
import importlib
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import orjson
import pytest
from starlette.types import Message

from application.commands.services import CommandServices
from application.log.envelope import SYSTEM
from application.queries.access import ALL_SCOPES, Caller
from infrastructure.inbound.mcp.endpoint import McpEndpoint
from tests.support.builders.query_services import query_services
from tests.support.http.mcp import headers_of, message_of
from tests.support.servers.running_log import RunningLog
from tests.support.waiting import until

pytestmark = pytest.mark.db
SERVER = "infrastructure.inbound.mcp.server"
LOADING_SECONDS_MAX = 20

CALLER = Caller(actor=SYSTEM, scopes=ALL_SCOPES, patterns=("*",))
BODY = orjson.dumps(message_of("server/discover"))
HEADERS = headers_of("server/discover")


def serving() -> list[asyncio.Task[Any]]:
    """Return the tasks that run a protocol server."""
    return [
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__qualname__", "") == "McpEndpoint._serve"
    ]


async def ask(endpoint: McpEndpoint) -> int:
    """Ask the server for its description. Return the status."""
    result: list[int] = []
    given = iter([{"type": "http.request", "body": BODY, "more_body": False}])

    async def receive() -> Message:
        message = next(given, None)
        # It stays connected.
        return message or await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            result.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()],
    }
    await endpoint.serve(scope, receive, send, CALLER, lambda: lambda: True)
    return result[0]


async def test_caller_that_leaves_ends_no_start(
    running: RunningLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, load = threading.Event(), importlib.import_module

    def loaded_slowly(name: str, package: str | None = None) -> ModuleType:
        if name == SERVER:
            left.wait(LOADING_SECONDS_MAX)
        return load(name, package)

    monkeypatch.setattr(importlib, "import_module", loaded_slowly)
    services = cast(CommandServices, await query_services(running, tmp_path))
    endpoint = McpEndpoint(services)
    first = asyncio.create_task(ask(endpoint))

    async def has_begun() -> bool:
        return bool(serving())

    await until(has_begun, "the start")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    left.set()
    assert await ask(endpoint) == 200
    assert len(serving()) == 1
    await endpoint.close()
    assert serving() == []
