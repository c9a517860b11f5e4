"""`GET /v1/runs/{runId}/explain`: how a spawn and a message were decided."""

from typing import Any

import pytest

from tests.support.builders.explained_spawns import (
    ADMISSION_RULES,
    BEHIND_ADMISSION,
    CONTINUATION_RULES,
)
from tests.support.http.problems import problem_of
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


NOTHING = dict.fromkeys(("agentId", "model", "thinking", "workspaceDir", "dependencies"))
"""Texts outside the events of a request that has only valid names."""


def explanation(server: Server, run_id: str, **query: str) -> dict[str, Any]:
    return server.get(f"/v1/runs/{run_id}/explain", **query)


def positions(server: Server, run_id: str) -> dict[str, int]:
    return {event["type"]: event["position"] for event in server.recorded(run_id)}


def results(explained: dict[str, Any]) -> dict[str, str]:
    return {decision["rule"]: decision["result"] for decision in explained["decisions"]}


def decision(rule: str, explained: dict[str, Any]) -> dict[str, Any]:
    (found,) = [decision for decision in explained["decisions"] if decision["rule"] == rule]
    return dict(found)


def test_accepted_spawn_passed_every_rule(server: Server) -> None:
    requester = server.new_session()
    run = server.announced(session=requester, agentId="talker", label="explained")
    explained = explanation(server, run["runId"])
    assert explained["runId"] == run["runId"]
    assert explained["stage"] == "announced"
    assert explained["configRevision"] == run["configRevision"]
    assert explained["refused"] is None
    assert [decision["rule"] for decision in explained["decisions"]] == [
        *ADMISSION_RULES,
        *BEHIND_ADMISSION,
    ]
    assert set(results(explained).values()) == {"passed"}
    assert {decision["configRevision"] for decision in explained["decisions"]} == {
        run["configRevision"]
    }
    assert decision("allow_agents", explained)["compared"] == {
        "requesterAgentId": "main",
        "targetAgentId": "talker",
        "given": True,
        "allowAgents": ["*"],
        "from": "defaults",
        "allowed": "*",
    }
    assert decision("depth", explained)["text"] == "depth 0 is below maxSpawnDepth 2"
    assert decision("capabilities", explained)["compared"]["depth"] == run["depth"]


def test_refusal_names_rule_and_text(server: Server) -> None:
    answer = server.spawn(session="agent:narrow:explained", agentId="main")
    refused = problem_of(answer, 403, "spawn_forbidden")
    explained = explanation(server, refused["runId"])
    assert explained["stage"] == "refused"
    assert explained["refused"] == {
        "rule": "allow_agents",
        "status": "forbidden",
        "text": refused["detail"],
        "current": None,
        "limit": None,
        "step": "admission",
    }
    decided = decision("allow_agents", explained)
    assert (decided["result"], decided["text"]) == ("refused", '"main" is not among narrow')
    assert decided["compared"]["from"] == "agent"
    found = results(explained)
    assert {found[rule] for rule in ADMISSION_RULES if rule != "allow_agents"} == {"passed"}
    assert {found[rule] for rule in BEHIND_ADMISSION} == {"not_judged"}


def test_explanation_is_as_of_a_position(server: Server) -> None:
    run = server.announced(session=server.new_session())
    at = positions(server, run["runId"])
    early = explanation(server, run["runId"], at=f"pos:{at['SpawnRequested']}")
    assert early["stage"] == "requested"
    assert set(results(early).values()) == {"not_judged"}
    later = explanation(server, run["runId"], at=f"pos:{at['SessionCreated'] - 1}")
    assert results(later)["allow_agents"] == "passed"
    assert results(later)["tool_policy"] == "not_judged"
    before = {"at": f"pos:{at['SpawnRequested'] - 1}"}
    answer = server.http.get(f"/v1/runs/{run['runId']}/explain", params=before)
    problem_of(answer, 404, "not_found")


def test_text_is_cut_without_scope_content(server: Server) -> None:
    given = "!" * 190
    answer = server.spawn(session=server.new_session("reader"), agentId=given)
    refused = problem_of(answer, 422, "spawn_error")
    shown = {}
    for name in ("reader", "texts"):
        with server.with_token(server.secrets[name]) as client:
            body = client.get(f"/v1/runs/{refused['runId']}/explain").json()
        shown[name] = body["refused"]["text"]
        assert given not in str(body["decisions"])
    assert shown["texts"] == refused["detail"]
    assert refused["detail"].startswith(shown["reader"])
    assert len(shown["reader"]) == 200


def test_free_text_in_place_of_name_is_shown(server: Server) -> None:
    requester = server.new_session("reader-asks")
    words = {"thinking": "as hard as you can, please", "model": "the best one there is"}
    body = {"requester": {"sessionKey": requester}, "task": "hello", **words}
    refused = server.http.post("/v1/spawns", json=body).json()
    assert refused["rule"] == "thinking"
    assert explanation(server, refused["runId"])["given"] == {**NOTHING, **words}
    accepted = server.announced(session=requester, agentId="talker")
    assert explanation(server, accepted["runId"])["given"] == NOTHING


def run_of_message(server: Server, run_id: str, message: str = "go on") -> dict[str, Any]:
    answer = server.http.post(f"/v1/runs/{run_id}/messages", json={"message": message})
    assert answer.status_code == 201, answer.text
    return server.run(answer.json()["runId"], "announced")


def test_run_of_message_is_explained(server: Server) -> None:
    first = server.announced(session=server.new_session(), agentId="talker")
    run = run_of_message(server, first["runId"])
    explained = explanation(server, run["runId"])
    decisions = {decision["rule"]: decision for decision in explained["decisions"]}
    assert [*decisions] == ["active_children", *CONTINUATION_RULES, "tool_policy", "capabilities"]
    assert {decision["result"] for decision in decisions.values()} == {"passed"}
    assert decisions["active_children"]["text"] == "0 of 5 children are active"
    assert decisions["workspace"]["compared"]["chosen"] == first["workspaceDir"]
    assert decisions["capabilities"]["compared"]["depth"] == run["depth"]
    at = positions(server, run["runId"])
    assert decisions["active_children"]["position"] == at["MessageReceived"]
    assert decisions["tool_policy"]["position"] == at["ContinuationPlanned"]
    assert explained["refused"] is None
    then = explanation(server, run["runId"], at=f"pos:{at['MessageReceived']}")
    assert {decision["result"] for decision in then["decisions"]} == {"not_judged"}
