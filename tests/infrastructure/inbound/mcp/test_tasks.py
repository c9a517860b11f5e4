"""Tasks of the extension: the task is the run."""

from typing import Any

import pytest

from tests.support.http.mcp import TASKS, McpCaller
from tests.support.servers.http_server import House
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


@pytest.fixture
def key(house: House) -> str:
    return house.session("tasks")


@pytest.fixture
def caller(house: House, key: str) -> McpCaller:
    return McpCaller(house.server.url, house.server.token, session=key, tasks=True)


def task_of(caller: McpCaller, task_id: str) -> dict[str, Any]:
    return dict(caller.ask("tasks/get", {"taskId": task_id})["result"])


def until(caller: McpCaller, task_id: str, status: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        task = task_of(caller, task_id)
        return task if task["status"] == status else None

    return wait_for(f"the task to be {status}", look)


def test_a_server_says_that_it_has_tasks(caller: McpCaller) -> None:
    told = caller.ask("server/discover")["result"]
    assert TASKS in told["capabilities"]["extensions"]


def test_a_spawn_is_a_task_with_the_runs_id_for_a_caller_that_follows_tasks(
    house: House, caller: McpCaller, key: str
) -> None:
    task = caller.call("sessions_spawn", task="look")
    assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
    assert [one["runId"] for one in house.runs(key)] == [task["taskId"]]
    done = until(caller, task["taskId"], "completed")
    assert done["result"]["isError"] is False
    assert "done" in done["result"]["content"][0]["text"]
    run = house.server.run(task["taskId"])
    assert done["createdAt"] == run["createdAt"].replace("Z", "+00:00")
    plain = McpCaller(house.server.url, house.server.token, session=key)
    assert plain.values("sessions_spawn", task="look")["status"] == "accepted"


def test_a_failed_run_is_a_result_that_is_an_error(caller: McpCaller) -> None:
    task = caller.call("sessions_spawn", task="fail", agentId="failing")
    done = until(caller, task["taskId"], "completed")
    assert done["result"]["isError"] is True
    assert "it went wrong" in done["result"]["content"][0]["text"]


def test_a_refused_spawn_is_no_task(caller: McpCaller) -> None:
    refused = caller.call("sessions_spawn", task="x", agentId="ghost")
    assert refused["structuredContent"]["status"] in ("forbidden", "error")


def test_a_cancelled_task_stops_the_run(house: House, caller: McpCaller) -> None:
    task = caller.call("sessions_spawn", task="long", agentId="slow")
    assert "result" in caller.ask("tasks/cancel", {"taskId": task["taskId"]})
    cancelled = until(caller, task["taskId"], "cancelled")
    assert "result" not in cancelled
    assert house.server.run(task["taskId"], "ended")["outcome"] == "stopped"


def test_update_is_refused_and_leaves_the_run(house: House, caller: McpCaller) -> None:
    task = caller.call("sessions_spawn", task="long", agentId="slow")
    house.server.run(task["taskId"], "started")
    given = {"taskId": task["taskId"], "inputResponses": {"a": "turn round"}}
    error = caller.ask("tasks/update", given)["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "invalid_request")
    assert "call subagents with action steer" in error["message"]
    assert house.server.run(task["taskId"])["stage"] == "started"
    caller.ask("tasks/cancel", {"taskId": task["taskId"]})


@pytest.mark.parametrize(
    "params",
    [
        {"taskId": "none"},
        {"taskId": "00000000-0000-4000-8000-000000000000"},
        {"taskId": "x" * 100},
        {},
        {"taskId": 5},
    ],
)
def test_what_is_no_task_is_an_error_of_the_call(caller: McpCaller, params: dict[str, Any]) -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert caller.ask(method, params)["error"]["code"] == -32602, method


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_tasks_are_for_callers_that_say_that_they_follow_them(
    house: House, caller: McpCaller, key: str, method: str
) -> None:
    task = caller.call("sessions_spawn", task="look")
    plain = McpCaller(house.server.url, house.server.token, session=key)
    answer = plain.post(method, {"taskId": task["taskId"]})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}
    until(caller, task["taskId"], "completed")


@pytest.mark.parametrize("named", ["another", None])
def test_the_header_has_to_name_the_task_that_is_meant(
    caller: McpCaller, named: str | None
) -> None:
    task = caller.call("sessions_spawn", task="look")
    answer = caller.post("tasks/get", {"taskId": task["taskId"]}, headers={"Mcp-Name": named})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32020
    assert "Mcp-Name" in answer.json()["error"]["message"]


def test_a_task_opens_for_nobody_else(house: House, caller: McpCaller) -> None:
    task = caller.call("sessions_spawn", task="look")
    stranger = McpCaller(
        house.server.url, house.secrets["controller"], session="agent:main:reader-7", tasks=True
    )
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        params = {"taskId": task["taskId"]}
        assert "no such task" in stranger.ask(method, params)["error"]["message"]
    until(caller, task["taskId"], "completed")
