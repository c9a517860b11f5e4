"""The first requests of `/mcp`, which wait for the SDK."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.support.http.mcp import VERSION
from tests.support.servers.databases import Databases
from tests.support.servers.inner_server import inner_server
from tests.support.servers.running_server import configuration, scripted

META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": VERSION,
    "Mcp-Method": "tools/list",
}

pytestmark = pytest.mark.server


def test_two_first_requests_get_the_same_answer(databases: Databases, tmp_path: Path) -> None:
    url = databases.create()
    with inner_server(tmp_path, configuration(scripted()), url) as server:

        def ask(_: int) -> httpx2.Response:
            return server.request(
                "POST", "/mcp", headers=HEADERS, content=json.dumps(MESSAGE).encode()
            )

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(ask, range(2))
    databases.drop(url)
    assert (first.status_code, second.status_code) == (200, 200), first.text
    assert "sessions_spawn" in first.text
    assert first.text == second.text
