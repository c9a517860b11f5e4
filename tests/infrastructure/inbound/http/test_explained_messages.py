"""`GET /v1/runs/{runId}/explain` of a run by which a session goes on."""

from typing import Any

import pytest

from tests.support.builders.explained_spawns import CONTINUATION_RULES
from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def explanation(house: House, run_id: object, **query: str) -> dict[str, Any]:
    answer = house.http.get(f"/v1/runs/{run_id}/explain", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def sent(house: House, run_id: str, message: str = "go on") -> dict[str, Any]:
    answer = house.http.post(f"/v1/runs/{run_id}/messages", json={"message": message})
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"], "announced")


def test_a_message_that_became_a_run_is_explained_by_its_own_rules(house: House) -> None:
    first = house.ended(house.session(), agentId="talker")
    run = sent(house, first["runId"])
    explained = explanation(house, run["runId"])
    decisions = {one["rule"]: one for one in explained["decisions"]}
    assert [*decisions] == ["active_children", *CONTINUATION_RULES, "tool_policy", "capabilities"]
    assert {one["result"] for one in decisions.values()} == {"passed"}
    assert decisions["active_children"]["text"] == "0 of 5 children are active"
    assert decisions["workspace"]["compared"]["chosen"] == first["workspaceDir"]
    assert decisions["capabilities"]["compared"]["depth"] == run["depth"]
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    at = {event["type"]: event["position"] for event in events}
    assert decisions["active_children"]["position"] == at["MessageReceived"]
    assert decisions["tool_policy"]["position"] == at["ContinuationPlanned"]
    assert explained["refused"] is None
    then = explanation(house, run["runId"], at=f"pos:{at['MessageReceived']}")
    assert {one["result"] for one in then["decisions"]} == {"not_judged"}


def test_the_run_before_is_explained_as_the_spawn_that_it_was(house: House) -> None:
    first = house.ended(house.session(), agentId="talker")
    before = explanation(house, first["runId"])
    sent(house, first["runId"])
    assert explanation(house, first["runId"])["decisions"] == before["decisions"]


def test_words_that_are_no_name_are_told_of_the_message_too(house: House) -> None:
    first = house.ended(house.session(), agentId="talker", model="the best one there is")
    run = sent(house, first["runId"])
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
    most = house.http.get(f"/v1/sessions/{requester}").json()["maxChildren"]
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
