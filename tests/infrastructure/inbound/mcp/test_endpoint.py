"""`/mcp` before the protocol begins: permitted callers and requests, also the very first."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.http.mcp import VERSION, McpCaller, headers_of, mcp_client, message_of, values_of
from tests.support.http.problems import problem_of
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import copied
from tests.support.servers.databases import Databases
from tests.support.servers.http_server import ONE
from tests.support.servers.server import QUICK_LEASE_SECONDS, Server, serving

pytestmark = pytest.mark.server


SLOW = agent("slow", scripted(steps=[{"afterMs": 300_000}]))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_endpoint_needs_a_token(server: Server, path: str) -> None:
    with server.with_token("none-of-it") as client:
        problem_of(client.post(path), 401, "unauthorized")


def test_foreign_host_and_origin_are_refused(server: Server) -> None:
    with server.with_token(server.token) as client:
        problem_of(client.post("/mcp", headers={"Host": "evil.example"}), 403, "foreign_host")
        answer = client.post("/mcp", headers={"Origin": "https://evil.example"})
        problem_of(answer, 403, "foreign_origin")


@pytest.mark.parametrize("body", [b"{", b"", b'{"a": "\\ud800"}', b'{"a": "\\u0000"}', b"[" * 5000])
def test_unrecordable_message_is_refused(server: Server, body: bytes) -> None:
    caller = McpCaller(server.url, server.token)
    answer = caller.send(body, {"MCP-Protocol-Version": VERSION})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32700
    assert answer.json()["id"] is None


def test_key_given_twice_is_refused(server: Server) -> None:
    caller = McpCaller(server.url, server.token)
    body = (
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name":'
        b' "sessions_spawn", "arguments": {"task": "pay 10", "task": "pay 1000"}}}'
    )
    answer = caller.send(body, {"MCP-Protocol-Version": VERSION})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == -32700
    assert error["data"]["errors"][0]["pointer"] == "/params/arguments/task"


def test_message_has_a_limit(server: Server) -> None:
    caller = McpCaller(server.url, server.token)
    answer = caller.send(json.dumps("x" * 17 * 1024 * 1024).encode(), {})
    assert answer.status_code == 413


def test_blanks_around_header_value_are_ignored(server: Server) -> None:
    address = urlsplit(server.url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
    message = message_of("tools/call", name="subagents")
    headers = headers_of("tools/call") | {"Mcp-Name": " \t subagents \t "}
    headers["Authorization"] = f"Bearer {server.token}"
    with contextlib.closing(connection):
        connection.request("POST", "/mcp", json.dumps(message), headers)
        assert "result" in json.load(connection.getresponse())


NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tasks/get", {"taskId": NOBODY}),
        ("resources/read", {"uri": f"spawnlog://runs/{NOBODY}"}),
        ("resources/read", {"uri": "test://nothing"}),
    ],
)
def test_error_names_code_of_http_and_resource(
    server: Server, method: str, params: dict[str, str]
) -> None:
    caller = McpCaller(server.url, server.token, tasks=True)
    error = caller.ask(method, params)["error"]
    assert error["code"] == -32602
    named = {"uri": params["uri"]} if "uri" in params else {}
    assert error["data"] == {"code": "not_found", **named}


def test_no_thread_is_offered_where_none_is_bound(server: Server) -> None:
    tools = McpCaller(server.url, server.token).ask("tools/list")["result"]["tools"]
    (spawn,) = [tool["inputSchema"] for tool in tools if tool["name"] == "sessions_spawn"]
    assert "thread" not in spawn["properties"]
    assert spawn["properties"]["mode"]["enum"] == ["run"]


def test_token_of_one_session_is_that_session(server: Server) -> None:
    own = McpCaller(server.url, server.secrets["one"])
    assert own.values("subagents")["callerSessionKey"] == ONE
    named = McpCaller(server.url, server.secrets["one"], session=ONE.upper())
    assert named.values("subagents")["callerSessionKey"] == ONE
    other_caller = McpCaller(server.url, server.secrets["one"], session="agent:main:other")
    refused = other_caller.call("subagents")
    assert refused["isError"]
    assert "Spawnlog-Session" in refused["structuredContent"]["error"]
    odd = McpCaller(server.url, server.token, session="x" * 600)
    assert odd.post("tools/list").status_code == 422


def test_repeated_key_takes_effect_once(server: Server) -> None:
    key = server.new_session("repeated")
    caller = McpCaller(server.url, server.token, session=key)
    meta = {"idempotencyKey": "k" * 20}
    first, second = (caller.call("sessions_spawn", meta, task="look") for _ in range(2))
    assert first["structuredContent"]["runId"] == second["structuredContent"]["runId"]
    assert len(server.runs(requester=key)) == 1
    second_answer = caller.call("sessions_spawn", meta, task="something else")
    assert second_answer["isError"]
    assert second_answer["structuredContent"]["code"] == "idempotency_key_reused"


def test_malformed_message_gets_no_foreign_link(server: Server) -> None:
    caller = McpCaller(server.url, server.token)
    accept = {"Accept": "application/json, text/event-stream"}
    for version in ("2026-07-28", "2025-06-18"):
        for content in (b'{"jsonrpc": "2.0", "id": 1}', b"[]", b'{"method": 5}'):
            answer = caller.send(content, {**accept, "MCP-Protocol-Version": version})
            assert answer.status_code == 400
            assert "http" not in answer.text


def test_misspelt_argument_spawns_nothing(server: Server) -> None:
    key = server.new_session("misspelt")
    caller = McpCaller(server.url, server.token, session=key)
    answer = caller.call("sessions_spawn", task="look", agent="echo")
    assert answer["isError"]
    values = answer["structuredContent"]
    assert values["status"] == "error"
    assert values["error"].startswith(
        'sessions_spawn: unknown argument "agent"; did you mean "agentId"? It takes task, '
    )
    assert server.runs(requester=key) == []


def test_trace_of_call_is_recorded(server: Server) -> None:
    key = server.new_session("traced")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    caller = McpCaller(server.url, server.token, session=key)
    spawned = caller.call("sessions_spawn", meta={"traceparent": trace}, task="look")
    run_id = spawned["structuredContent"]["runId"]
    (requested, *_) = server.recorded(run_id)
    assert requested["traceparent"] == trace


@pytest.mark.kill
async def test_client_finds_its_task_after_a_kill(tmp_path: Path, made_data_dir: Path) -> None:
    tmp_path.chmod(0o755)
    config = configuration({**SLOW, "default": True})
    config["spawnlog"]["leaseSeconds"] = QUICK_LEASE_SECONDS
    server = Server(copied(made_data_dir, tmp_path / "data"), config)
    with server:
        async with mcp_client(server.url, server.token) as client:
            spawned = await values_of(client, "sessions_spawn", task="long", label="long")
        server.run(spawned["runId"], "started")
        server.kill()
        server.start()
        # A started task is not started twice: the next server returns its end.
        async with mcp_client(server.url, server.token, transport="stdio") as client:
            waited = await values_of(client, "subagents_wait", timeoutSeconds=40)
        (done,) = waited["done"]
        assert done["run"]["runId"] == spawned["runId"]
        assert done["run"]["outcome"] == "error"
        assert "interrupted" in done["announcement"]["text"]
        caller = McpCaller(server.url, server.token, tasks=True)
        task = caller.ask("tasks/get", {"taskId": spawned["runId"]})["result"]
        assert (task["status"], task["result"]["isError"]) == ("completed", True)


def test_first_requests_at_once_are_answered_alike(databases: Databases) -> None:
    content = json.dumps(message_of("tools/list")).encode()
    with serving(databases, configuration(agent())) as server:

        def ask(_: int) -> httpx2.Response:
            return server.http.post("/mcp", headers=headers_of("tools/list"), content=content)

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(ask, range(2))
    assert (first.status_code, second.status_code) == (200, 200), first.text
    assert "sessions_spawn" in first.text
    assert first.text == second.text
