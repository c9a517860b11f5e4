"""`subagents_wait` loses no report and repeats no read one; a task is the run."""

import json
from typing import Any

import pytest

from tests.support.http.mcp import TASKS, McpCaller
from tests.support.http.requests import spawn_body
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


@pytest.fixture
def key(server: Server) -> str:
    return server.new_session("waits")


@pytest.fixture
def caller(server: Server, key: str) -> McpCaller:
    return McpCaller(server.url, server.token, session=key)


def labels_of(answer: dict[str, Any]) -> list[str]:
    return [item["run"]["label"] for item in answer["done"]]


def test_report_is_given_again_until_read(server: Server, caller: McpCaller, key: str) -> None:
    server.announced(session=key, label="first")
    first = caller.values("subagents_wait")
    again = caller.values("subagents_wait")
    assert labels_of(first) == labels_of(again) == ["first"]
    assert f"after: {first['after']}" not in first["text"], "nobody is at work"
    behind = caller.values("subagents_wait", after=first["after"])
    assert (behind["status"], labels_of(behind), behind["after"]) == ("done", [], first["after"])
    server.announced(session=key, label="second")
    assert labels_of(caller.values("subagents_wait", after=first["after"])) == ["second"]
    assert labels_of(caller.values("subagents_wait")) == ["second"], "the first was acknowledged"
    (entry, *_) = server.get(f"/v1/sessions/{key}/announcements")["items"]
    assert (entry["label"], entry["state"]) == ("first", "acknowledged")


def test_wait_for_any_goes_on_after_a_position(server: Server, caller: McpCaller, key: str) -> None:
    server.announced(session=key, label="early")
    with server.held(key, label="late") as late:
        first = caller.values("subagents_wait", until="any")
        assert (first["status"], labels_of(first)) == ("waiting", ["early"])
        assert f"with after: {first['after']}." in first["text"]
        server.let_go(late.run_id)
        second = caller.values("subagents_wait", until="any", after=first["after"])
        assert labels_of(second) == ["late"]


def test_many_reports_come_in_several_answers(server: Server, caller: McpCaller, key: str) -> None:
    tasks = ["look"] * 5
    labels = set()
    for number in range(12):
        caller.values("sessions_spawn", task=tasks, parallel=True, label=f"{number}")
        labels |= {f"{number}-{item}" for item in range(1, 6)}
        caller.values("subagents_wait", timeoutSeconds=20)
    found: list[str] = []
    answer = caller.values("subagents_wait")
    while True:
        found += labels_of(answer)
        if not answer["more"]:
            break
        assert len(answer["done"]) == 50
        assert answer["pending"] == []
        assert (
            f"There are more reports: call subagents_wait with after: {answer['after']}."
            in (answer["text"])
        )
        answer = caller.values("subagents_wait", after=answer["after"])
    assert sorted(found) == sorted(labels)


def test_refusals_hide_no_report(server: Server, caller: McpCaller, key: str) -> None:
    run = server.announced(session=key, label="hidden")
    tasks = ["hello"] * 50
    body = {**spawn_body(key), "agentId": "ghost", "task": tasks, "parallel": True}
    for _ in range(5):
        assert server.http.post("/v1/spawns", json=body).status_code == 403
    refused = server.get("/v1/runs", requester=key, status="refused")
    assert refused["nextCursor"]
    assert labels_of(caller.values("subagents_wait")) == ["hidden"]
    assert caller.values("subagents")["total"] == 1
    assert caller.values("sessions_list")["count"] == 1
    assert labels_of(caller.values("subagents_wait", targets=[run["runId"]])) == ["hidden"]


def test_run_id_means_its_continued_session(server: Server, caller: McpCaller, key: str) -> None:
    run = server.announced(session=key, label="goes-on")
    sent = caller.values("sessions_send", sessionKey=run["childSessionKey"], message="and now?")
    assert sent["status"] == "ok"
    for name in (run["runId"], run["childSessionKey"], "goes-on"):
        waited = caller.values("subagents_wait", targets=[name])
        assert [item["run"]["runId"] for item in waited["done"]] == [sent["runId"]], name
        assert caller.values("subagents", action="log", target=name)["runId"] == sent["runId"]


def test_reader_goes_on_by_position(server: Server) -> None:
    key = "agent:main:reader-waits"
    server.announced(session=key, label="read")
    reader = McpCaller(server.url, server.secrets["texts"], session=key)
    first = reader.values("subagents_wait", until="any")
    assert labels_of(first)[-1] == "read"
    behind = reader.values("subagents_wait", until="any", after=first["after"], timeoutSeconds=0)
    assert behind["done"] == []
    assert labels_of(reader.values("subagents_wait"))[-1] == "read"


def test_repeated_call_is_answered_alike(server: Server, caller: McpCaller, key: str) -> None:
    run = server.announced(session=key, label="told")
    once = {"idempotencyKey": "s" * 20}
    sends = [
        caller.call(
            "sessions_send", once, sessionKey=run["childSessionKey"], message="x", timeoutSeconds=9
        )["structuredContent"]
        for _ in range(2)
    ]
    assert sends[0]["runId"] == sends[1]["runId"]
    other_caller = McpCaller(server.url, server.token, session=server.new_session("other"))
    first, second = (
        item.call("sessions_spawn", {"idempotencyKey": "t" * 20}, task="same")
        for item in (caller, other_caller)
    )
    assert first["structuredContent"]["status"] == "accepted"
    assert second["structuredContent"]["code"] == "idempotency_key_reused"


def test_yield_repeats_no_report_that_was_read(server: Server, key: str) -> None:
    with (
        server.held(key, label="parent") as parent,
        server.held(parent.child, label="late") as late,
    ):
        child = McpCaller(server.url, parent.token)
        early = child.values("sessions_spawn", task="look", label="early", agentId="main")
        server.run(early["runId"], "announced")
        read = child.values("subagents_wait", until="any")
        assert labels_of(read) == ["early"]
        child.values("subagents_wait", until="any", after=read["after"], timeoutSeconds=0)
        silent = child.values("sessions_spawn", task="look", label="unread", agentId="main")
        server.run(silent["runId"], "announced")
        once = {"idempotencyKey": "y" * 20}
        first, again = (child.call("sessions_yield", once, message="I wait") for _ in range(2))
        assert first["structuredContent"] == again["structuredContent"]
        assert not first["isError"]
        server.let_go(parent.run_id)
        woken = wait_for("it to be woken", lambda: server.run(parent.run_id).get("continuedBy"))
        message = server.run(woken)["task"]
        server.let_go(woken)
        server.let_go(late.run_id)
    assert "unread" in message
    assert "early" not in message


def test_yield_is_answered_once_per_key(server: Server, key: str) -> None:
    with server.held(key) as parent, server.held(parent.child):
        child = McpCaller(server.url, parent.token)
        child.call("sessions_yield", {"idempotencyKey": "y" * 20}, message="one")
        second_yield = child.call("sessions_yield", {"idempotencyKey": "y" * 20}, message="other")
        assert second_yield["structuredContent"]["code"] == "idempotency_key_reused"
    events = server.recorded(parent.run_id)
    assert [event["type"] for event in events].count("YieldRequested") == 1


def test_erased_run_hides_no_other(server: Server, caller: McpCaller, key: str) -> None:
    run = server.announced(session=key, agentId="talker")
    child = run["childSessionKey"]
    second = caller.values("sessions_send", sessionKey=child, message="and now?")["runId"]
    server.erase_transcript(run["runId"])
    history = caller.values("sessions_history", sessionKey=child)
    assert history["erased"] == [run["runId"]]
    assert [entry["body"] for entry in history["entries"]]
    server.erase_transcript(second)
    history = caller.values("sessions_history", sessionKey=child)
    assert (history["erased"], history["entries"]) == ([run["runId"], second], [])


def test_session_is_named_in_any_script(server: Server) -> None:
    caller = McpCaller(server.url, server.token, session="agent:main:café-ü")
    assert caller.values("subagents")["callerSessionKey"] == "agent:main:café-ü"


@pytest.mark.parametrize("method", ["resources/list", "tasks/get"])
def test_foreign_session_is_an_error_of_the_call(server: Server, method: str) -> None:
    caller = McpCaller(server.url, server.secrets["one"], session="agent:main:other", tasks=True)
    error = caller.ask(method, {"taskId": "00000000-0000-4000-8000-000000000000"})["error"]
    assert error["code"] == -32602, json.dumps(error)
    assert "does not act for that session" in error["message"]


def test_task_needs_the_scope_of_a_run(server: Server) -> None:
    key = f"agent:main:spawner-{server.new_session()[-8:]}"
    caller = McpCaller(server.url, server.secrets["spawner"], session=key, tasks=True)
    spawned = caller.values("sessions_spawn", task="look")
    assert spawned["status"] == "accepted", "no task for who may not look at it"
    error = caller.ask("tasks/get", {"taskId": spawned["runId"]})["error"]
    assert "read" in error["message"]


def test_wait_for_one_run_is_a_task_at_once(server: Server, key: str) -> None:
    caller = McpCaller(server.url, server.token, session=key, tasks=True)
    with server.held(key, label="held") as held:
        task = caller.call("subagents_wait", targets=["held"], timeoutSeconds=600)
        assert (task["resultType"], task["taskId"]) == ("task", held.run_id)
    server.run(held.run_id, "announced")


def test_stream_is_refused(server: Server) -> None:
    with server.with_token(server.token) as client:
        for method in ("GET", "DELETE"):
            assert client.request(method, "/mcp").status_code == 405


@pytest.fixture
def follower(server: Server, key: str) -> McpCaller:
    return McpCaller(server.url, server.token, session=key, tasks=True)


def task_of(follower: McpCaller, task_id: str) -> dict[str, Any]:
    return dict(follower.ask("tasks/get", {"taskId": task_id})["result"])


def wait_until(follower: McpCaller, task_id: str, status: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        task = task_of(follower, task_id)
        return task if task["status"] == status else None

    return wait_for(f"the task to be {status}", look)


def test_spawn_is_task_of_the_runs_id(server: Server, follower: McpCaller, key: str) -> None:
    task = follower.call("sessions_spawn", task="look")
    assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
    assert [run["runId"] for run in server.runs(requester=key)] == [task["taskId"]]
    done = wait_until(follower, task["taskId"], "completed")
    assert done["result"]["isError"] is False
    assert "done" in done["result"]["content"][0]["text"]
    run = server.run(task["taskId"])
    assert done["createdAt"] == run["createdAt"].replace("Z", "+00:00")
    plain = McpCaller(server.url, server.token, session=key)
    assert plain.values("sessions_spawn", task="look")["status"] == "accepted"


def test_failed_run_is_error_of_its_task(follower: McpCaller) -> None:
    task = follower.call("sessions_spawn", task="fail", agentId="failing")
    done = wait_until(follower, task["taskId"], "completed")
    assert done["result"]["isError"] is True
    assert "it went wrong" in done["result"]["content"][0]["text"]


def test_a_cancelled_task_stops_the_run(server: Server, follower: McpCaller) -> None:
    task = follower.call("sessions_spawn", task="long", agentId="slow")
    assert "result" in follower.ask("tasks/cancel", {"taskId": task["taskId"]})
    cancelled = wait_until(follower, task["taskId"], "cancelled")
    assert "result" not in cancelled
    assert server.run(task["taskId"], "ended")["outcome"] == "stopped"


def test_update_is_refused_and_leaves_the_run(server: Server, follower: McpCaller) -> None:
    task = follower.call("sessions_spawn", task="long", agentId="slow")
    server.run(task["taskId"], "started")
    given = {"taskId": task["taskId"], "inputResponses": {"a": "turn round"}}
    error = follower.ask("tasks/update", given)["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "invalid_request")
    assert "call subagents with action steer" in error["message"]
    assert server.run(task["taskId"])["stage"] == "started"
    follower.ask("tasks/cancel", {"taskId": task["taskId"]})


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
def test_unknown_task_is_an_error_of_the_call(follower: McpCaller, params: dict[str, Any]) -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert follower.ask(method, params)["error"]["code"] == -32602, method


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_tasks_need_the_capability(
    server: Server, follower: McpCaller, key: str, method: str
) -> None:
    task = follower.call("sessions_spawn", task="look")
    plain = McpCaller(server.url, server.token, session=key)
    answer = plain.post(method, {"taskId": task["taskId"]})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}
    wait_until(follower, task["taskId"], "completed")


@pytest.mark.parametrize("named", ["another", None])
def test_header_names_the_task(follower: McpCaller, named: str | None) -> None:
    task = follower.call("sessions_spawn", task="look")
    answer = follower.post("tasks/get", {"taskId": task["taskId"]}, headers={"Mcp-Name": named})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32020
    assert "Mcp-Name" in answer.json()["error"]["message"]


def test_task_is_open_to_nobody_else(server: Server, follower: McpCaller) -> None:
    task = follower.call("sessions_spawn", task="look")
    stranger = McpCaller(
        server.url, server.secrets["controller"], session="agent:main:reader-7", tasks=True
    )
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        params = {"taskId": task["taskId"]}
        assert "task not found" in stranger.ask(method, params)["error"]["message"]
    wait_until(follower, task["taskId"], "completed")
