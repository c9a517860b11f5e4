"""Tools and resources of operations: their descriptions, and the answers of HTTP."""

import json
from typing import Any

import pytest

from application.operations import OPERATIONS
from tests.support.http.mcp import McpCaller
from tests.support.http.shown_tools import RECORDED, shown_tools
from tests.support.servers.server import Server


def test_tools_are_as_recorded() -> None:
    assert shown_tools() == RECORDED.read_text("utf-8"), "write them anew: make docs"


def test_each_operation_with_a_tool_only_reads() -> None:
    rows = [row for row in OPERATIONS if row.tool is not None or row.resource is not None]
    assert {row.method for row in rows} == {"GET"}
    assert all(
        row.takes <= {"services", "caller", "query", *row.path_arguments.values()} for row in rows
    )


@pytest.mark.server
def test_tool_answers_as_http_does(server: Server) -> None:
    key = server.new_session("rows")
    caller = McpCaller(server.url, server.token, session=key)
    run_id = caller.values("sessions_spawn", task="look", label="row")["runId"]
    server.run(run_id, "announced")
    answers: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
        ("agents_list", {}, "/v1/agents", {"requester": key}),
        ("session_status", {}, f"/v1/sessions/{key}", {}),
        ("session_status", {"sessionKey": key.upper()}, f"/v1/sessions/{key}", {}),
        ("runs_explain", {"runId": "row"}, f"/v1/runs/{run_id}/explain", {}),
        ("runs_explain", {"target": "last"}, f"/v1/runs/{run_id}/explain", {}),
        ("runs_at", {}, "/v1/runs", {"requester": key}),
        ("runs_at", {"runId": "row"}, f"/v1/runs/{run_id}", {}),
        (
            "runs_at",
            {"at": "run:row@started", "runId": "1"},
            f"/v1/runs/{run_id}",
            {"at": "run:row@started"},
        ),
    ]
    for tool, given, path, query in answers:
        assert caller.values(tool, **given) == server.http.get(path, params=query).json(), tool
    for part in ("", "/prompt", "/transcript?last=500&tools=true"):
        uri = f"spawnlog://runs/{run_id}{part.partition('?')[0]}"
        (read,) = caller.ask("resources/read", {"uri": uri})["result"]["contents"]
        assert json.loads(read["text"]) == server.http.get(f"/v1/runs/{run_id}{part}").json()


@pytest.mark.server
def test_page_as_of_a_position_leads_to_the_next(server: Server) -> None:
    key = server.new_session("pages")
    caller = McpCaller(server.url, server.token, session=key)
    runs = [caller.values("sessions_spawn", task=task)["runId"] for task in ("look", "again")]
    head = server.http.get("/v1/runs", params={"limit": 1}).headers["Spawnlog-Position"]
    at = f"pos:{head}"
    first = caller.values("runs_at", at=at, limit=1)
    second = caller.values("runs_at", at=at, limit=1, cursor=first["nextCursor"])
    assert [item["runId"] for page in (first, second) for item in page["items"]] == runs[::-1]


@pytest.mark.server
def test_number_beyond_its_bounds_is_the_nearest_bound(server: Server) -> None:
    caller = McpCaller(server.url, server.token, session=server.new_session("bounds"))
    for limit in (0, -1, 2.5, 2**64, 1e308):
        assert caller.values("runs_at", limit=limit)["items"] == []


@pytest.mark.server
def test_session_not_on_record_is_an_error_of_the_call(server: Server) -> None:
    caller = McpCaller(server.url, server.token, session=server.new_session("unknown"))
    refused = caller.call("session_status")
    assert refused["isError"]
    assert refused["structuredContent"]["code"] == "not_found"
