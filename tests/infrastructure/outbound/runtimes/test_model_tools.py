"""A model has the tools that its child's policy permits, and cannot call others."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from application.ports.credentials import Credential
from application.ports.runtimes import Launch, RuntimeEnd, TranscriptEntry
from infrastructure.inbound.mcp.tools.catalogue import TOOLS
from infrastructure.outbound.runtimes.model import ModelRuntimes
from tests.support.builders.launches import all_of, model_launch, pairs
from tests.support.servers.model_endpoint import ModelEndpoint, call, said, text
from tests.support.servers.script_server import redirect
from tests.support.servers.tool_server import ToolServer, tool_server

pytestmark = pytest.mark.process
TOKEN = "tools-token-4c1f77"


@pytest.fixture
async def tools() -> AsyncIterator[ToolServer]:
    async with tool_server() as tools:
        yield tools


def with_tools(endpoint: ModelEndpoint, tools: ToolServer, **changes: Any) -> Launch:
    server = {"url": tools.url, "headers": {"Authorization": "Bearer ${TOKEN}"}}
    launch = model_launch(endpoint.url, model="m", mcpServers={"desk": server})
    name = "mcpServers.desk.headers.Authorization"
    values = {**launch.environment, name: Credential(f"Bearer {TOKEN}")}
    return replace(launch, environment=values, tools_deny=(), **changes)


def as_spawnlogs_own(endpoint: ModelEndpoint, tools: ToolServer, **changes: Any) -> Launch:
    """Return a launch in which the tools are spawnlog's own: below the callback address."""
    return replace(
        model_launch(endpoint.url, model="m"),
        url=tools.url.removesuffix("/mcp"),
        tools_deny=(),
        **changes,
    )


async def run_of(launch: Launch) -> tuple[list[TranscriptEntry], RuntimeEnd]:
    async with asyncio.timeout(30):
        session = await ModelRuntimes().open(launch)
        session.go()
        return await all_of(session)


def offered(body: Mapping[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools", ())}


async def test_tool_is_called_by_name_of_its_server(
    endpoint: ModelEndpoint, tools: ToolServer
) -> None:
    calls = said(call("desk_add", first=2, second=3), calls=True)
    endpoint.answers("m", calls, said(text("It is 5.")))
    entries, end = await run_of(with_tools(endpoint, tools))
    kind, recorded = pairs(entries)[0]
    body = dict(recorded)
    took = body.pop("durationMs")
    assert isinstance(took, int)
    assert 0 <= took < 30_000
    assert (kind, body) == (
        "tool",
        {"name": "desk_add", "input": '{"first": 2, "second": 3}', "output": "5"},
    )
    assert end.result == "It is 5."
    assert tools.authorizations == {f"Bearer {TOKEN}"}
    assert offered(endpoint.bodies[0]) >= {"desk_add", "desk_fail"}


async def test_denied_tool_is_not_offered_or_called(
    endpoint: ModelEndpoint, tools: ToolServer
) -> None:
    calls = said(call("desk_add", first=2, second=3), calls=True)
    endpoint.answers("m", calls, said(text("I cannot.")))
    launch = replace(with_tools(endpoint, tools), tools_deny=("desk_add",))
    entries, end = await run_of(launch)
    assert "desk_echo" in offered(endpoint.bodies[0])
    assert "desk_add" not in offered(endpoint.bodies[0])
    assert "Unknown tool name" in str(entries[0].body["output"])
    assert (end.outcome, tools.calls) == ("success", [])


async def test_only_allowed_tools_are_offered(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    endpoint.answers("m", said(text("done")))
    await run_of(with_tools(endpoint, tools, tools_allow=("desk_e*",)))
    assert offered(endpoint.bodies[0]) == {"desk_echo"}


async def test_failure_of_tool_is_told_to_model(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    endpoint.answers("m", said(call("desk_fail"), calls=True), said(text("It failed.")))
    entries, end = await run_of(with_tools(endpoint, tools))
    assert entries[0].kind == "tool"
    assert end.result == "It failed."


async def test_wrong_arguments_are_told_to_model(
    endpoint: ModelEndpoint, tools: ToolServer
) -> None:
    endpoint.answers("m", said(call("desk_add", first="x"), calls=True), said(text("I give up.")))
    entries, end = await run_of(with_tools(endpoint, tools))
    assert [entry.kind for entry in entries] == ["tool", "message"]
    assert "second" in str(entries[0].body["output"])
    assert (end.result, tools.calls) == ("I give up.", [])


async def test_call_that_is_no_json_is_kept(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    broken = call("desk_add").replace(b'"arguments": "{}"', b'"arguments": "{one: "')
    endpoint.answers("m", said(broken, calls=True), said(text("I give up.")))
    entries, end = await run_of(with_tools(endpoint, tools))
    assert [entry.kind for entry in entries] == ["tool", "message"]
    assert (entries[0].body["input"], end.result) == ("{one: ", "I give up.")


async def test_absent_tool_server_ends_the_run(endpoint: ModelEndpoint) -> None:
    server = {"url": "http://127.0.0.1:9/mcp"}
    launch = model_launch(endpoint.url, model="m", mcpServers={"desk": server})
    entries, end = await run_of(launch)
    assert (entries, end.outcome, endpoint.bodies) == ([], "error", [])
    assert end.error is not None
    assert "the tools of desk are not available" in end.error


async def test_redirect_of_tool_server_is_not_followed(endpoint: ModelEndpoint) -> None:
    elsewhere = endpoint.server.at("/elsewhere", b"")
    url = endpoint.server.at("/mcp", redirect(elsewhere, "307 Temporary Redirect"))
    _, end = await run_of(model_launch(endpoint.url, model="m", mcpServers={"desk": {"url": url}}))
    assert (end.outcome, {request.target for request in endpoint.server.asked}) == (
        "error",
        {"/mcp"},
    )


async def test_token_repeated_by_tool_is_masked(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    calls = said(call("desk_echo", text=f"It is {TOKEN}!"), calls=True)
    endpoint.answers("m", calls, said(text("done")))
    entries, _ = await run_of(with_tools(endpoint, tools))
    assert len(entries) == 2
    assert TOKEN not in str(entries)


async def test_tool_calls_of_run_are_limited(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    endpoint.answers("m", said(call("desk_add", first=1, second=1), calls=True))
    launch = with_tools(endpoint, tools)
    runtime = launch.runtime.model_copy(update={"tool_calls_max": 2})
    _, end = await run_of(replace(launch, runtime=runtime))
    assert (end.reason, tools.calls) == ("usage_limit", ["add", "add"])


async def test_call_broken_off_has_no_output(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    endpoint.answers("m", said(call("desk_hang"), calls=True))
    session = await ModelRuntimes().open(with_tools(endpoint, tools))
    session.go()
    async with asyncio.timeout(20):
        while not tools.hanging:
            await asyncio.sleep(0.01)
    async with asyncio.timeout(2):
        await session.kill()
        while tools.hanging:
            await asyncio.sleep(0.01)
    entries, end = await all_of(session)
    assert pairs(entries) == [("tool", {"name": "desk_hang", "input": "{}", "output": None})]
    assert end.outcome == "stopped"


async def test_own_tools_have_own_names_and_childs_token(
    endpoint: ModelEndpoint, tools: ToolServer
) -> None:
    endpoint.answers("m", said(text("done")))
    await run_of(as_spawnlogs_own(endpoint, tools, tools_allow=("sessions_yield",)))
    assert offered(endpoint.bodies[0]) == {"sessions_yield"}
    assert tools.authorizations == {"Bearer child-token-of-this-run"}


async def test_turn_ends_where_it_yields(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    yields = said(text("I wait for them."), call("sessions_yield"), calls=True)
    endpoint.answers("m", yields, said(text("never said")))
    entries, end = await run_of(as_spawnlogs_own(endpoint, tools))
    assert [entry.kind for entry in entries] == ["message", "tool"]
    assert (end.outcome, end.result) == ("success", "I wait for them.")
    assert len(endpoint.bodies) == 1


async def test_nothing_is_asked_without_own_tools(endpoint: ModelEndpoint) -> None:
    endpoint.answers("m", said(text("done")))
    launch = replace(model_launch(endpoint.url, model="m"), url="http://127.0.0.1:9")
    _, end = await run_of(replace(launch, tools_deny=("*",)))
    assert end.outcome == "success"
    assert "tools" not in endpoint.bodies[0]


def test_own_tools_are_those_of_the_catalogue() -> None:
    from infrastructure.outbound.runtimes.model_tools import OWN_TOOLS

    assert set(OWN_TOOLS) == {tool.name for tool in TOOLS}


async def test_output_of_tool_is_limited(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    endpoint.answers("m", said(call("desk_long", characters=1_100_000), calls=True))
    entries, end = await run_of(with_tools(endpoint, tools))
    assert (end.outcome, end.reason) == ("error", "output_limit"), end.error
    assert [entry.body["name"] for entry in entries if entry.kind == "tool"] == ["desk_long"]
    assert entries[-1].body["output"] is None


async def test_answer_of_tool_server_is_limited(endpoint: ModelEndpoint, tools: ToolServer) -> None:
    calls = said(call("desk_long", characters=9_000_000), calls=True)
    endpoint.answers("m", calls, said(text("I give up.")))
    entries, end = await run_of(with_tools(endpoint, tools))
    assert (end.outcome, end.result) == ("success", "I give up.")
    assert len(str(entries[0].body["output"])) < 1000
