"""Any arguments of a tool get an answer, without a server error and without an unrecorded spawn."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from infrastructure.inbound.mcp.tools.catalogue import TOOLS
from infrastructure.inbound.mcp.tools.offered import OfferedTool
from tests.support.http.mcp import McpCaller
from tests.support.servers.server import Server
from tests.support.tiers import examples

pytestmark = pytest.mark.server

SETTINGS = examples(
    250,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHAPES = {tool.name: Draft202012Validator(tool.output_schema()) for tool in TOOLS}
"""Schemas with which clients validate results."""

WORDS = [
    "", " ", "list", "log", "info", "send", "stop", "kill", "all", "*", "last", "#1", "1", "0",
    "main", "agent:main:main", "agent::", "current", "\0", "\u202e", "\ud800", "x" * 5000, "run",
    "session", "fork", "any", "pos:1", "pos:999999999", "-5m", "2026-03-01T12:00:00Z",
    "00000000-0000-4000-8000-000000000000", "../../etc/passwd", "$(id)", "%s", "ghost", "slow",
]  # fmt: skip
NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, -1, 2**63, 2**64, 10**400, 1e308, -0.0]),
)
TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(WORDS))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def arguments_of(tool: OfferedTool) -> st.SearchStrategy[dict[str, Any]]:
    """Known arguments, sometimes with one more of any name; waits end at once."""
    known = sorted(tool.arguments_read)
    at_once = {"timeoutSeconds": 0} if "timeoutSeconds" in known else {}
    given = st.dictionaries(st.sampled_from(known), VALUES, max_size=6) if known else st.just({})
    none: dict[str, Any] = {}
    more = st.sampled_from([none] * 3) | st.dictionaries(TEXTS, VALUES, max_size=1)
    return st.builds(
        lambda some, more_arguments: {**some, **more_arguments, **at_once}, given, more
    )


CALLS = st.sampled_from(TOOLS).flatmap(
    lambda tool: st.tuples(st.just(tool.name), arguments_of(tool))
)
STATUSES = {
    "accepted", "forbidden", "error", "ok", "done", "waiting", "yielded", "queued", "timeout",
    "rate_limited",
}  # fmt: skip


@given(tool_call=CALLS)
@SETTINGS
def test_any_arguments_are_answered(server: Server, tool_call: tuple[str, dict[str, Any]]) -> None:
    tool, arguments = tool_call
    key = server.new_session("fuzzed")
    caller = McpCaller(server.url, server.token, session=key)
    response = caller.post("tools/call", {"name": tool, "arguments": arguments})
    assert response.status_code < 500, response.text
    answer = response.json() if "json" in response.headers["content-type"] else {}
    if "error" in answer:
        # Values that cannot be stored are refused.
        assert answer["error"]["code"] in (-32700, -32602, -32600), answer
        assert server.runs(requester=key) == []
        return
    values = answer["result"]["structuredContent"]
    SHAPES[tool].validate(values)
    assert values.get("status", "ok") in STATUSES, values
    runs = server.runs(requester=key)
    result = values.get("runs") or ([values] if values.get("runId") else [])
    if tool == "sessions_spawn":
        on_record = {run["runId"] for run in runs}
        assert {run["runId"] for run in result} == on_record
    else:
        assert runs == []


@given(message=VALUES)
@SETTINGS
def test_any_message_is_answered(server: Server, message: Any) -> None:
    caller = McpCaller(server.url, server.token)
    accept = {"Accept": "application/json, text/event-stream"}
    for version in ("2026-07-28", "2025-06-18"):
        content = json.dumps(message).encode("ascii")
        response = caller.send(content, {**accept, "MCP-Protocol-Version": version})
        assert response.status_code < 500, response.text
