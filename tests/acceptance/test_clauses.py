"""Clauses of the specifications that were open once, each with its id.

`docs/openclaw-differences.md` has the intended differences, with reasons.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.child_programs import waiter
from tests.support.servers.configurations import agent, scripted
from tests.support.servers.server import Serve, Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server

MILLION = 1_000_000
ECHO = (
    "import json, sys; given = json.load(sys.stdin);"
    " print(json.dumps({'type': 'result', 'text': json.dumps(given)}))"
)
MEDDLING = """
import json, os, urllib.error, urllib.request
asked = urllib.request.Request(
    os.environ["SPAWNLOG_URL"] + "/v1/sessions/agent:main:main/stop", data=b"{}", method="POST",
    headers={
        "Authorization": "Bearer " + os.environ["SPAWNLOG_TOKEN"],
        "Content-Type": "application/json",
    },
)
try:
    urllib.request.urlopen(asked, timeout=30)
    answer = {}
except urllib.error.HTTPError as refused:
    answer = {"status": refused.code, **json.load(refused)}
print(json.dumps({"type": "result", "text": json.dumps(answer)}))
"""
FAILING = """#!/bin/sh
printf '{"oops": null, "message": "M"}'
"""


def usage(model: str | None) -> dict[str, Any]:
    result = {"inputTokens": MILLION, "outputTokens": 0}
    return {"usage": result if model is None else {**result, "model": model}}


def priced(models: dict[str, float]) -> dict[str, Any]:
    offered = [{"id": name, "cost": {"input": cost}} for name, cost in models.items()]
    return {"providers": {"p": {"models": offered}}}


@pytest.fixture(scope="module")
def server(serve: Serve, gates: Path) -> Server:
    script = gates / "oops.sh"
    script.write_text(FAILING, "utf-8")
    script.chmod(0o755)
    scripts = [{"id": "s", "uri": str(script), "errorKey": "oops"}]
    echo = {"type": "command", "command": [sys.executable, "-I", "-c", ECHO], "output": "jsonl"}
    agents = [
        agent("main", default=True),
        agent("cheap", scripted(steps=[usage("p/x")]), model="p/m"),
        agent("unplanned", scripted(steps=[usage("p/x")])),
        agent("late", scripted(steps=[{"afterMs": 60_000}])),
        agent("lost", scripted(outcome="unknown", error="nobody knows")),
        agent("told", subagents={"contextScripts": {"run": scripts}}),
        {"id": "echo", "runtime": echo},
        {"id": "meddler", "runtime": echo | {"command": [sys.executable, "-I", "-c", MEDDLING]}},
        waiter("waiter", gates),
    ]
    return serve(*agents, models=priced({"m": 1, "x": 1000}), maxSpawnDepth=2)


def ended(server: Server, agent_id: str, **body: Any) -> dict[str, Any]:
    answer = server.spawn("do it", agentId=agent_id, **body)
    assert answer.status_code == 201, answer.text
    return dict(server.run(answer.json()["runId"], "announced"))


def announcement(server: Server, run: dict[str, Any]) -> str:
    path = f"/v1/sessions/{run['requesterSessionKey']}/announcements"
    items = server.http.get(path, params={"limit": 500}).json()["items"]
    return str(next(item["text"] for item in items if item["runId"] == run["runId"]))


def at_work(server: Server, gates: Path, **body: Any) -> dict[str, Any]:
    """Return a child that waits to be released."""
    run_id = server.spawn("wait", agentId="waiter", **body).json()["runId"]
    wait_for("it to begin", (gates / f"{run_id}.began").exists)
    return dict(server.run(run_id))


def test_c42_an_error_key_that_is_present_is_an_error(server: Server) -> None:
    run = ended(server, "told")
    events = server.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    (resolved,) = [event for event in events if event["type"] == "ScriptsResolved"]
    assert [receipt["outcome"] for receipt in resolved["payload"]["receipts"]] == ["failed"]


def test_p14_the_preamble_of_an_open_session_is_changed_and_cleared(server: Server) -> None:
    place = f"/v1/sessions/{ended(server, 'main')['childSessionKey']}/preamble"
    assert server.http.put(place, json={"preamble": "It rains."}).json()["changed"] is True
    assert server.http.delete(place).json()["characters"] == 0


def test_t18_t84_t91_t92_the_child_is_told_what_its_requester_said(server: Server) -> None:
    requester = {
        "sessionKey": "agent:main:telling",
        "channel": "telegram",
        "accountId": "a",
        "to": "42",
        "threadId": "7",
        "groupId": "g",
        "groupChannel": "#general",
        "groupSpace": "team",
        "memberRoleIds": ["admin"],
    }
    run = ended(server, "echo", requester=requester, label="told", runTimeoutSeconds=60)
    given = json.loads(run["resultText"])
    assert given["requester"] == requester
    assert (given["label"], given["runTimeoutSeconds"]) == ("told", 60)
    assert (given["lane"], given["depth"]) == ("subagent", 1)


def test_t24_a_refusal_tells_the_key_that_the_child_would_have(server: Server) -> None:
    refused = problem_of(server.spawn("x", context="fork"), 422, "spawn_error")
    assert refused["rule"] == "context_fork"
    assert refused["childSessionKey"].startswith("agent:main:subagent:")


def test_t37_a14_the_depth_rule_speaks_to_a_leaf_and_is_recorded(
    server: Server, gates: Path
) -> None:
    above = at_work(server, gates)
    leaf = at_work(server, gates, requester={"sessionKey": above["childSessionKey"]})
    asks: dict[str, Any] = {"requester": {"sessionKey": leaf["childSessionKey"]}}
    refused = problem_of(server.spawn("x", **asks), 403, "spawn_forbidden")
    assert (refused["rule"], refused["current"], refused["limit"]) == ("depth", 2, 2)
    assert server.run(refused["runId"])["stage"] == "refused"
    for run in (leaf, above):
        (gates / f"{run['runId']}.go").touch()


def test_what_the_tool_policy_denies_a_session_is_refused_and_recorded(
    server: Server, gates: Path
) -> None:
    above = at_work(server, gates)
    leaf = ended(server, "meddler", requester={"sessionKey": above["childSessionKey"]})
    refused = json.loads(leaf["resultText"])
    assert (refused["status"], refused["code"], refused["rule"]) == (403, "not_permitted", "tools")
    assert refused["detail"] == "subagents is not allowed by the tool policy of this session"
    events = server.http.get("/v1/events", params={"types": "ToolRefused", "limit": 500}).json()
    (recorded,) = [item for item in events["items"] if item["runId"] == leaf["runId"]]
    assert recorded["stream"] == f"session:{leaf['childSessionKey']}"
    payload = recorded["payload"]
    assert (payload["tool"], payload["about"]) == ("subagents", "agent:main:main")
    (gates / f"{above['runId']}.go").touch()


def test_t52_a_session_shows_its_model_and_where_that_comes_from(server: Server) -> None:
    run = ended(server, "main", model="p/m", thinking="low")
    session = server.http.get(f"/v1/sessions/{run['childSessionKey']}").json()
    shown = ("modelProvider", "model", "modelSource", "thinking", "thinkingSource")
    assert [session[name] for name in shown] == ["p", "m", "argument", "low", "argument"]


def test_t60_a7_a_transcript_has_both_sides(server: Server) -> None:
    run = ended(server, "main")
    path = f"/v1/runs/{run['runId']}/transcript"
    first, *_, last = server.http.get(path).json()["items"]
    assert first["body"]["role"] == "user"
    assert first["body"]["text"].endswith("do it")
    assert last["body"]["text"] == "done"


def test_a42_a_run_whose_end_nobody_knows_is_unknown(server: Server) -> None:
    run = ended(server, "lost")
    assert (run["outcome"], run["status"]) == ("unknown", "unknown")
    assert announcement(server, run).startswith("Status: unknown\n")


def test_a44_a_timeout_names_its_limit(server: Server) -> None:
    run = ended(server, "late", runTimeoutSeconds=1)
    text = "it took longer than its limit of 1 s (runTimeoutSeconds)"
    assert (run["outcome"], run["error"]) == ("timeout", text)
    assert f"\nNotes: {text}\n" in announcement(server, run)


@pytest.mark.parametrize("agent_id", ["cheap", "unplanned"])
def test_a49_the_model_that_was_reported_is_paid(server: Server, agent_id: str) -> None:
    run = ended(server, agent_id)
    assert run["estimatedCostUsd"] == 1000
    assert [(model["model"], model["costUsd"]) for model in run["usage"]["models"]] == [
        ("p/x", 1000)
    ]
    assert "est $1000.00" in announcement(server, run)


def test_a32_a50_the_path_of_a_transcript_is_there_when_it_is_read(server: Server) -> None:
    run = ended(server, "main", cleanup="delete")
    server.run(run["runId"], "archived")

    def is_there() -> bool:
        path = re.search(r"transcript (\S+)$", announcement(server, run))
        return path is not None and Path(path[1]).is_file()

    wait_for("the file of the transcript", is_there)


def test_a53_a13_a_session_without_the_tool_spawns_nobody(serve: Serve, gates: Path) -> None:
    tools = {"subagents": {"tools": {"deny": ["sessions_spawn"]}}}
    denying = serve(waiter("waiter", gates), tools=tools, maxSpawnDepth=2)
    above = at_work(denying, gates)
    asks: dict[str, Any] = {"requester": {"sessionKey": above["childSessionKey"]}}
    refused = problem_of(denying.spawn("x", agentId="waiter", **asks), 403, "spawn_forbidden")
    assert refused["rule"] == "tools"
    assert denying.run(refused["runId"])["stage"] == "refused"
    prompt = denying.http.get(f"/v1/runs/{above['runId']}/prompt").json()["systemPrompt"]
    assert "leaves you no sub-agents of your own" in prompt
    (gates / f"{above['runId']}.go").touch()


def test_t102_who_expects_no_completion_is_not_told_to_wait(server: Server) -> None:
    answer = server.spawn("x", expectsCompletionMessage=False).json()
    assert answer["note"].startswith("No completion is announced for this child")


@pytest.mark.parametrize("seconds", [0.5, -1])
def test_a_limit_that_was_made_none_is_a_warning(server: Server, seconds: float) -> None:
    answer = server.spawn("x", runTimeoutSeconds=seconds).json()
    (warning,) = answer["warnings"]
    assert warning.startswith(
        f"runTimeoutSeconds {seconds:g} was rounded down to 0, which means no limit"
    )
