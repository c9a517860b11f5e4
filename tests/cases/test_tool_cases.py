"""Cases of a server's tools: their answers, and the record."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.served import caller_of, case_server, child_of, configured
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def spawned(given: Given) -> Answer:
    """Return the error of the tool, without a record; or the answer to a recorded refusal; or the
    record of an accepted spawn. Without arguments, return the texts of the tool list.
    """
    server = case_server()
    key = server.new_session("spawn")
    if "args" not in given:
        (tool,) = [
            tool
            for tool in caller_of(key).ask("tools/list")["result"]["tools"]
            if tool["name"] == "sessions_spawn"
        ]
        schema = tool["inputSchema"]["properties"]
        return {"schema": {**schema, **{n: v["enum"] for n, v in schema.items() if "enum" in v}}}
    result = caller_of(key).call("sessions_spawn", **given["args"])
    answer = result["structuredContent"]
    if "status" in given.get("spawn_result", {}):
        (refused,) = server.runs(requester=key)
        assert (refused["runId"], refused["stage"]) == (answer["runId"], "refused")
        return dict(answer)
    if result["isError"]:
        assert server.runs(requester=key) == [], "it was asked for a spawn all the same"
        return {"throws": answer["error"]}
    return {"effective": _requested(answer["runId"])}


def timed(given: Given) -> Answer:
    """Return the recorded seconds of a run with an argument, under a configured limit or none."""
    server = case_server()
    key = server.new_session("timed")
    limit = {} if given.get("config") is None else {"runTimeoutSeconds": given["config"]}
    arguments = given.get("args", {"task": "t"})
    if given.get("arg") is not None:
        arguments = {**arguments, "runTimeoutSeconds": given["arg"]}
    if limit:
        configured(**limit)
    try:
        answer = caller_of(key).values("sessions_spawn", **arguments)
    finally:
        if limit:
            configured()
    seconds = server.run(answer["runId"])["runTimeoutSeconds"]
    return {
        "status": answer["status"],
        "runTimeoutSeconds": seconds,
        "agent_call": {"timeout": seconds},
    }


def killed(given: Given) -> Answer:
    """Stop a run that is over by its label, which records nothing; or let a leaf with the tool stop
    a run.
    """
    server = case_server()
    key = server.new_session("kill")
    if given.get("callerScope") == "none":
        with server.held(key) as parent, server.held(parent.child) as leaf:
            return child_of(leaf.token).values("subagents", action="kill", target="all")
    run = server.announced(session=key, label=given["entry"])
    before = _events(run["runId"])
    answer = caller_of(key).values("subagents", action=given["action"], target=given["entry"])
    same = _events(run["runId"]) == before
    return {**answer, "session.abortedLastRun": "untouched" if same else "changed"}


def steered(given: Given) -> Answer:
    """Let a child steer its own session, or a requester one that has ended before its child."""
    server = case_server()
    key = server.new_session("steer")
    if "caller" in given:
        with server.held(key) as own:
            return child_of(own.token).values(
                "subagents", action="steer", target=own.child, message="go on"
            )
    label = given["entry"]
    with server.held(key, label=label) as parent, server.held(parent.child) as child:
        server.let_go(parent.run_id)
        wait_for("it to end", lambda: server.run(parent.run_id)["stage"] == "ended")
        answer = caller_of(key).values(
            "subagents", action=given["action"], target=label, message="go on"
        )
        server.let_go(child.run_id)
        server.let_go(answer["runId"])
    return answer


def listed(given: Given) -> Answer:
    """Return the list of a session; the task of its one sub-agent follows the dash."""
    server = case_server()
    key = server.new_session("list")
    if "task_length" in given:
        server.announced(session=key, label="long", task="x" * given["task_length"])
    text = caller_of(key).values("subagents", action="list")["text"]
    return {"text": text, "max_task": max(len(part) for part in text.split(" - ")[1:] or [""])}


def _requested(run_id: str) -> dict[str, Any]:
    """Return the recorded request of a run."""
    events = case_server().http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return dict(events[0]["payload"]["options"])


def _events(run_id: str) -> object:
    return case_server().http.get(f"/v1/runs/{run_id}/events").json()["items"]


RUNNERS: Mapping[str, Runner] = {
    "admission.params": spawned,
    "admission.timeout": timed,
    "control.kill": killed,
    "control.steer": steered,
    "list": listed,
}


@pytest.mark.parametrize("case", cases_of(RUNNERS, by_a_server=True))
def test_the_tool_answers_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
