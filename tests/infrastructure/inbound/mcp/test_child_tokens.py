"""Reach of a child's token through the tools: its own session, and everything below it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from infrastructure.inbound.mcp.tools.catalogue import TOOLS
from infrastructure.inbound.mcp.tools.offered import OfferedTool
from tests.support.http.mcp import McpCaller
from tests.support.servers.server import HeldRun, Server

pytestmark = pytest.mark.server

CANARY = "canary-of-a-stranger"


@pytest.fixture
def child(server: Server) -> Iterator[HeldRun]:
    """Yield a waiting orchestrator."""
    with server.held(server.new_session("parent"), label="child") as run:
        yield run


@pytest.fixture
def leaf(server: Server, child: HeldRun) -> Iterator[HeldRun]:
    """Yield a waiting leaf."""
    with server.held(child.child, label="leaf") as run:
        yield run


def tools_of(caller: McpCaller) -> set[str]:
    return {tool["name"] for tool in caller.ask("tools/list")["result"]["tools"]}


def test_role_is_offered_what_its_policy_leaves(
    server: Server, child: HeldRun, leaf: HeldRun
) -> None:
    of_leaf = {"sessions_yield", "shared_context_get", "runs_explain", "runs_at"}
    more = {
        "sessions_spawn", "sessions_list", "sessions_history", "subagents", "subagents_wait",
    }  # fmt: skip
    assert tools_of(McpCaller(server.url, leaf.token)) == of_leaf
    assert tools_of(McpCaller(server.url, child.token)) == of_leaf | more


def test_token_is_offered_what_its_scopes_permit(server: Server) -> None:
    caller = McpCaller(server.url, server.secrets["reader"], session="agent:main:reader-1")
    assert tools_of(caller) == {
        "subagents", "subagents_wait", "sessions_list", "session_status", "agents_list", "runs_at",
        "runs_explain",
    }  # fmt: skip
    refused = caller.call("sessions_spawn", task="x")
    assert refused["isError"]
    assert refused["structuredContent"]["status"] == "forbidden"


def test_denied_tool_is_refused_and_recorded(server: Server, leaf: HeldRun) -> None:
    caller = McpCaller(server.url, leaf.token)
    for tool in ("subagents", "subagents_wait", "sessions_send", "agents_list", "session_status"):
        answer = caller.call(tool, message="x", sessionKey="x")
        assert answer["isError"], tool
        assert answer["structuredContent"]["status"] == "forbidden", tool
    events = server.get("/v1/events", types="ToolRefused", limit=500)
    stream = f"session:{leaf.child}"
    denied = [item["payload"]["tool"] for item in events["items"] if item["stream"] == stream]
    assert denied == [
        "subagents", "subagents", "sessions_send", "agents_list", "session_status",
    ]  # fmt: skip
    spawned = caller.values("sessions_spawn", task="deeper")
    assert spawned["status"] == "forbidden"
    assert spawned["rule"] == "depth"
    refused = server.run(spawned["runId"])
    assert refused["requesterSessionKey"] == leaf.child


def arguments(tool: OfferedTool, run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return calls of a tool about a run that the caller does not own."""
    names = [run["runId"], run["childSessionKey"], run["sessionId"], run["requesterSessionKey"]]
    common = [
        {"sessionKey": name, "runId": name, "target": name, "targets": [name], "message": "x",
         "task": "x", "at": "pos:5", "timeoutSeconds": 0, "requester": {"sessionKey": name},
         "dependsOn": [name], "label": None}
        for name in names
    ]  # fmt: skip
    if tool.name == "subagents":
        actions = ("list", "log", "info", "send", "steer", "stop", "kill")
        common = [{**item, "action": action} for item in common for action in actions]
    # An unknown argument would be refused before anything is looked up.
    return [{name: item[name] for name in item if name in tool.arguments_read} for item in common]


def test_child_reaches_nothing_beyond_its_session(server: Server, child: HeldRun) -> None:
    with server.held(server.new_session("stranger"), label=CANARY, task=CANARY) as held:
        run = server.run(held.run_id)
        before = server.recorded(held.run_id)
        caller = McpCaller(server.url, child.token)
        follower = McpCaller(server.url, child.token, tasks=True)
        assert {tool.name for tool in TOOLS} >= tools_of(caller)
        for tool in TOOLS:
            for given in arguments(tool, run):
                answer = caller.ask("tools/call", {"name": tool.name, "arguments": given})
                assert CANARY not in json.dumps(answer), (tool.name, given)
        for part in ("", "/prompt", "/transcript"):
            uri = f"spawnlog://runs/{held.run_id}{part}"
            assert CANARY not in json.dumps(caller.ask("resources/read", {"uri": uri}))
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            params = {"taskId": held.run_id, "inputResponses": {"a": "x"}}
            assert "task not found" in follower.ask(method, params)["error"]["message"]
        assert CANARY not in json.dumps(caller.ask("resources/list"))
        after = server.recorded(held.run_id)
        assert after == before, "nothing was done to it"
        named = McpCaller(server.url, child.token, session=run["childSessionKey"])
        assert "error" in named.ask("tools/list") or not tools_of(named) - tools_of(caller)
        assert named.call("sessions_spawn", task="x")["isError"]
    assert {
        run["requesterSessionKey"] for run in server.runs(requester=run["childSessionKey"])
    } == set()
