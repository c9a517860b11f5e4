"""`GET /v1/runs/{runId}/explain`: how a spawn and a message were decided."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.builders.explained_spawns import (
    ADMISSION_RULES,
    BEHIND_ADMISSION,
    CONTINUATION_RULES,
    PLAN_RULES,
)
from tests.support.http.problems import problem_of
from tests.support.servers.http_server import GHOST, House

pytestmark = pytest.mark.server


NOTHING = dict.fromkeys(("agentId", "model", "thinking", "workspaceDir", "dependencies"))
"""What is given beside the log by a request that names nothing but names."""


def explanation(house: House, run_id: object, **query: str) -> dict[str, Any]:
    return house.get(f"/v1/runs/{run_id}/explain", **query)


def positions(house: House, run_id: object) -> dict[str, int]:
    return {one["type"]: one["position"] for one in house.events(run_id)}


def results(explained: dict[str, Any]) -> dict[str, str]:
    return {one["rule"]: one["result"] for one in explained["decisions"]}


def decision(rule: str, explained: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in explained["decisions"] if one["rule"] == rule]
    return dict(found)


def test_a_spawn_that_was_accepted_passed_every_rule(house: House) -> None:
    requester = house.session()
    run = house.ended(requester, agentId="talker", label="explained")
    explained = explanation(house, run["runId"])
    assert explained["runId"] == run["runId"]
    assert explained["stage"] == "announced"
    assert explained["configRevision"] == run["configRevision"]
    assert explained["refused"] is None
    assert [one["rule"] for one in explained["decisions"]] == [*ADMISSION_RULES, *BEHIND_ADMISSION]
    assert set(results(explained).values()) == {"passed"}
    assert {one["configRevision"] for one in explained["decisions"]} == {run["configRevision"]}
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


def test_each_decision_stands_at_the_position_of_the_event_that_records_it(house: House) -> None:
    run = house.ended(house.session())
    at = positions(house, run["runId"])
    explained = explanation(house, run["runId"])
    assert decision("depth", explained)["position"] == at["SpawnRequested"]
    assert decision("override", explained)["position"] == at["ScriptsResolved"]
    assert decision("tool_policy", explained)["position"] == at["SessionCreated"]


def test_a_refusal_names_the_rule_that_failed_and_what_the_caller_was_told(house: House) -> None:
    answer = house.spawn("agent:narrow:explained", agentId="main")
    refused = problem_of(answer, 403, "spawn_forbidden")
    explained = explanation(house, refused["runId"])
    assert explained["stage"] == "refused"
    assert explained["refused"] == {
        "rule": "allow_agents",
        "status": "forbidden",
        "text": refused["detail"],
        "current": None,
        "limit": None,
        "step": "admission",
    }
    one = decision("allow_agents", explained)
    assert (one["result"], one["text"]) == ("refused", '"main" is not among narrow')
    assert one["compared"]["from"] == "agent"
    found = results(explained)
    assert {found[rule] for rule in ADMISSION_RULES if rule != "allow_agents"} == {"passed"}
    assert {found[rule] for rule in BEHIND_ADMISSION} == {"not_judged"}


def test_an_agent_that_is_not_configured_is_refused_behind_the_scripts(house: House) -> None:
    refused = problem_of(house.spawn(house.session(), agentId=GHOST), 422, "spawn_error")
    explained = explanation(house, refused["runId"])
    assert decision("agent_unknown", explained)["compared"] == {
        "agentId": GHOST,
        "requestedAgentId": GHOST,
        "configured": False,
    }
    assert explained["refused"]["step"] == "preparation"
    (script,) = [one for one in explained["decisions"] if one["rule"] == "context_scripts"]
    assert (script["compared"]["id"], script["result"]) == ("ponder", "passed")
    found = results(explained)
    assert found["agent_unknown"] == "refused"
    assert {found[rule] for rule in PLAN_RULES if rule != "agent_unknown"} == {"not_judged"}


def test_an_explanation_is_read_as_of_a_position(house: House) -> None:
    run = house.ended(house.session())
    at = positions(house, run["runId"])
    early = explanation(house, run["runId"], at=f"pos:{at['SpawnRequested']}")
    assert early["stage"] == "requested"
    assert set(results(early).values()) == {"not_judged"}
    later = explanation(house, run["runId"], at=f"pos:{at['SessionCreated'] - 1}")
    assert results(later)["allow_agents"] == "passed"
    assert results(later)["tool_policy"] == "not_judged"
    before = {"at": f"pos:{at['SpawnRequested'] - 1}"}
    answer = house.http.get(f"/v1/runs/{run['runId']}/explain", params=before)
    problem_of(answer, 404, "not_found")


def test_a_spawn_that_was_stopped_while_it_was_prepared_says_so(house: House, label: str) -> None:
    session = house.session()
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(house.spawn, session, agentId="pondering", label=label)
        house.gates.wait(label)
        (run,) = house.runs(session)
        assert house.http.post(f"/v1/runs/{run['runId']}/stop").is_success
        problem_of(asking.result(), 422, "spawn_error")
    explained = explanation(house, run["runId"])
    last = explained["decisions"][-1]
    assert (last["rule"], last["result"]) == ("stopped", "refused")
    assert results(explained)["context_scripts"] == "not_judged"
    assert results(explained)["active_children"] == "passed"


def test_who_reads_no_texts_gets_the_beginning_of_one(house: House) -> None:
    given = "!" * 190
    answer = house.spawn(house.session("reader"), agentId=given)
    refused = problem_of(answer, 422, "spawn_error")
    shown = {}
    for name in ("reader", "texts"):
        with house.with_token(house.secrets[name]) as client:
            body = client.get(f"/v1/runs/{refused['runId']}/explain").json()
        shown[name] = body["refused"]["text"]
        assert given not in str(body["decisions"])
    assert shown["texts"] == refused["detail"]
    assert refused["detail"].startswith(shown["reader"])
    assert len(shown["reader"]) == 200


def test_what_was_asked_for_and_is_no_name_is_told_to_who_may_read_texts(house: House) -> None:
    requester = house.session("reader-asks")
    words = {"thinking": "as hard as you can, please", "model": "the best one there is"}
    body = {"requester": {"sessionKey": requester}, "task": "hello", **words}
    refused = house.http.post("/v1/spawns", json=body).json()
    assert refused["rule"] == "thinking"
    assert explanation(house, refused["runId"])["given"] == {**NOTHING, **words}
    accepted = house.ended(requester, agentId="talker")
    assert explanation(house, accepted["runId"])["given"] == NOTHING


def run_of_message(house: House, run_id: str, message: str = "go on") -> dict[str, Any]:
    answer = house.http.post(f"/v1/runs/{run_id}/messages", json={"message": message})
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"], "announced")


def test_a_message_that_became_a_run_is_explained_by_its_own_rules(house: House) -> None:
    first = house.ended(house.session(), agentId="talker")
    run = run_of_message(house, first["runId"])
    explained = explanation(house, run["runId"])
    decisions = {one["rule"]: one for one in explained["decisions"]}
    assert [*decisions] == ["active_children", *CONTINUATION_RULES, "tool_policy", "capabilities"]
    assert {one["result"] for one in decisions.values()} == {"passed"}
    assert decisions["active_children"]["text"] == "0 of 5 children are active"
    assert decisions["workspace"]["compared"]["chosen"] == first["workspaceDir"]
    assert decisions["capabilities"]["compared"]["depth"] == run["depth"]
    at = positions(house, run["runId"])
    assert decisions["active_children"]["position"] == at["MessageReceived"]
    assert decisions["tool_policy"]["position"] == at["ContinuationPlanned"]
    assert explained["refused"] is None
    then = explanation(house, run["runId"], at=f"pos:{at['MessageReceived']}")
    assert {one["result"] for one in then["decisions"]} == {"not_judged"}


def test_the_run_before_is_explained_as_the_spawn_that_it_was(house: House) -> None:
    first = house.ended(house.session(), agentId="talker")
    before = explanation(house, first["runId"])
    run_of_message(house, first["runId"])
    assert explanation(house, first["runId"])["decisions"] == before["decisions"]


def test_words_that_are_no_name_are_told_of_the_message_too(house: House) -> None:
    first = house.ended(house.session(), agentId="talker", model="the best one there is")
    run = run_of_message(house, first["runId"])
    assert explanation(house, run["runId"])["given"] == {
        "agentId": None,
        "model": "the best one there is",
        "thinking": None,
        "workspaceDir": None,
        "dependencies": None,
    }


def test_a_refused_message_names_its_rule(house: House) -> None:
    requester = house.session()
    first = house.ended(requester, agentId="talker")
    most = house.get(f"/v1/sessions/{requester}")["maxChildren"]
    runs = [house.accepted(requester, agentId="holder") for _ in range(most)]
    try:
        answer = house.http.post(f"/v1/runs/{first['runId']}/messages", json={"message": "more"})
        refused = problem_of(answer, 403, "spawn_forbidden")
    finally:
        for run in runs:
            house.gates.open(run["runId"])
    explained = explanation(house, refused["runId"])
    assert explained["refused"]["rule"] == "active_children"
    assert explained["refused"]["text"] == refused["detail"]
    decisions = {one["rule"]: one for one in explained["decisions"]}
    assert decisions["active_children"]["result"] == "refused"
    assert decisions["workspace"]["result"] == "not_judged"
    for run in runs:
        house.server.run(run["runId"], "announced")
