"""The SDK's client over both transports, in the current and the previous protocol."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.http.mcp import Mode, Transport, mcp_client, values_of
from tests.support.servers.preloaded_command import command_folder
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

if TYPE_CHECKING:
    import mcp

pytestmark = pytest.mark.server

WAYS = pytest.mark.parametrize(
    ("transport", "mode"),
    nightly_but(
        [("http", "auto"), ("http", "legacy"), ("stdio", "auto"), ("stdio", "legacy")],
        [("http", "auto"), ("stdio", "legacy")],
    ),
)
TOOLS = {
    "sessions_spawn", "sessions_yield", "subagents", "subagents_wait", "sessions_list",
    "sessions_history", "sessions_send", "session_status", "agents_list", "shared_context_get",
    "runs_explain", "runs_at",
}  # fmt: skip
PAGE = Path(__file__).parents[4] / "docs" / "mcp.md"


@pytest.mark.nightly
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_python_client_of_the_page_spawns_and_waits(server: Server, transport: Transport) -> None:
    program, over_http = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    if transport == "http":
        over_http = over_http.replace("http://127.0.0.1:8700", server.url)
        program = program.replace("async def main", f"{over_http}\n\nasync def main")
    plain = {name: text for name, text in os.environ.items() if not name.startswith("SPAWNLOG_")}
    with command_folder() as commands:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **plain,
                "PATH": f"{commands}:{plain['PATH']}",
                "SPAWNLOG_DATA_DIR": str(server.data_dir),
                "SPAWNLOG_TOKEN": server.token,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Status: success")
    assert done.stdout.endswith("All are done.\n")


@WAYS
async def test_client_spawns_waits_and_reads(
    server: Server, transport: Transport, mode: Mode
) -> None:
    from mcp.shared.exceptions import MCPError

    key = server.new_session("models")
    way: dict[str, Any] = {"transport": transport, "mode": mode, "session": key}
    async with mcp_client(server.url, server.token, **way) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        spawned = await values_of(client, "sessions_spawn", task="look", agentId="talker")
        assert spawned["status"] == "accepted"
        heard: list[tuple[float, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, message))

        waited = await client.call_tool("subagents_wait", {}, progress_callback=hear)
        assert waited.structured_content is not None
        assert waited.structured_content["status"] == "done"
        (done,) = waited.structured_content["done"]
        assert done["run"]["runId"] == spawned["runId"]
        assert "Status: success" in done["announcement"]["text"]
        assert done["announcement"]["text"] in waited.content[0].text  # type: ignore[union-attr]
        assert [number for number, _ in heard] == list(range(1, len(heard) + 1))
        read = await values_of(
            client, "sessions_history", sessionKey=spawned["childSessionKey"], includeTools=True
        )
        assert [entry["kind"] for entry in read["entries"]].count("tool") >= 1
        (uri, *_) = [resource.uri for resource in (await client.list_resources()).resources]
        assert str(uri) == f"spawnlog://runs/{spawned['runId']}"
        contents = (await client.read_resource(f"{uri}/transcript")).contents
        assert "spoken" in contents[0].text  # type: ignore[union-attr]
        refused = await client.call_tool("sessions_spawn", {"task": "x", "agentId": "ghost"})
        assert refused.is_error is False
        assert refused.structured_content is not None
        assert refused.structured_content["status"] in ("forbidden", "error")
        assert refused.structured_content["role"] == "ghost"
        with pytest.raises(MCPError, match="tools: sessions_spawn, "):
            await client.call_tool("sessions_fly", {})
    assert {run["stage"] for run in server.runs(requester=key)} == {"announced", "refused"}


@WAYS
async def test_client_comes_back_to_its_run(
    server: Server, transport: Transport, mode: Mode
) -> None:
    key = server.new_session("cut-off")
    way: dict[str, Any] = {"transport": transport, "mode": mode, "session": key}
    async with mcp_client(server.url, server.token, **way) as client:
        spawned = await values_of(client, "sessions_spawn", task="hold", agentId="holder")
        server.began(spawned["runId"])
        waiting = asyncio.create_task(client.call_tool("subagents_wait", {"timeoutSeconds": 60}))
        await _is_waiting(client)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        # Only the wait was cancelled; the client and the run continue.
        assert (await values_of(client, "subagents"))["total"] == 1
    server.let_go(spawned["runId"])
    async with mcp_client(server.url, server.token, **way) as client:
        waited = await values_of(client, "subagents_wait", timeoutSeconds=20)
    assert [item["run"]["outcome"] for item in waited["done"]] == ["success"]
    assert "over" in waited["done"][0]["announcement"]["text"], "the wait before took nothing"


async def _is_waiting(client: "mcp.Client") -> None:
    """Wait until a later call is answered, so that the wait has been sent."""
    await client.call_tool("session_status", {})
