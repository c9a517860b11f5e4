"""`GET /v1/runs/{runId}/explain`: how a spawn was decided."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from infrastructure.inbound.http.responses.examples import EXPLANATION
from tests.support.builders.explained_spawns import (
    ADMISSION_RULES,
    ADMITTED,
    BEHIND_ADMISSION,
    PLAN_RULES,
    plan_facts,
    told,
)
from tests.support.builders.run_histories import created, resolved
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import requested
from tests.support.http.problems import problem_of
from tests.support.servers.http_server import GHOST, House

NOTHING = dict.fromkeys(("agentId", "model", "thinking", "workspaceDir", "dependencies"))
"""What is given beside the log by a request that names nothing but names."""


def explanation(house: House, run_id: object, **query: str) -> dict[str, Any]:
    answer = house.http.get(f"/v1/runs/{run_id}/explain", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def results(explained: dict[str, Any]) -> dict[str, str]:
    return {one["rule"]: one["result"] for one in explained["decisions"]}


def the(rule: str, explained: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in explained["decisions"] if one["rule"] == rule]
    return dict(found)


def test_the_example_has_every_rule_with_all_that_it_compares() -> None:
    decisions = told(
        requested(),
        ADMITTED,
        resolved(receipts=(receipt("who", "injected"),), candidates=(candidate("who", "main"),)),
        created(facts=plan_facts()),
    )
    real = [one.members() for one in decisions]
    assert [one["rule"] for one in EXPLANATION["decisions"]] == [one["rule"] for one in real]
    for shown, one in zip(EXPLANATION["decisions"], real, strict=True):
        assert set(shown) == set(one)
        assert set(shown["compared"]) == set(one["compared"]), shown["rule"]
        assert shown["step"] == one["step"]


@pytest.mark.server
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
    assert the("allow_agents", explained)["compared"] == {
        "requesterAgentId": "main",
        "targetAgentId": "talker",
        "given": True,
        "allowAgents": ["*"],
        "from": "defaults",
        "allowed": "*",
    }
    assert the("depth", explained)["text"] == "depth 0 is below maxSpawnDepth 2"
    assert the("capabilities", explained)["compared"]["depth"] == run["depth"]


@pytest.mark.server
def test_each_decision_stands_at_the_position_of_the_event_that_records_it(house: House) -> None:
    run = house.ended(house.session())
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    at = {event["type"]: event["position"] for event in events}
    explained = explanation(house, run["runId"])
    assert the("depth", explained)["position"] == at["SpawnRequested"]
    assert the("override", explained)["position"] == at["ScriptsResolved"]
    assert the("tool_policy", explained)["position"] == at["SessionCreated"]


@pytest.mark.server
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
    one = the("allow_agents", explained)
    assert (one["result"], one["text"]) == ("refused", '"main" is not among narrow')
    assert one["compared"]["from"] == "agent"
    found = results(explained)
    assert {found[rule] for rule in ADMISSION_RULES if rule != "allow_agents"} == {"passed"}
    assert {found[rule] for rule in BEHIND_ADMISSION} == {"not_judged"}


@pytest.mark.server
def test_an_agent_that_is_not_configured_is_refused_behind_the_scripts(house: House) -> None:
    refused = problem_of(house.spawn(house.session(), agentId=GHOST), 422, "spawn_error")
    explained = explanation(house, refused["runId"])
    assert the("agent_unknown", explained)["compared"] == {
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


@pytest.mark.server
def test_an_explanation_is_read_as_of_a_position(house: House) -> None:
    run = house.ended(house.session())
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    at = {event["type"]: event["position"] for event in events}
    early = explanation(house, run["runId"], at=f"pos:{at['SpawnRequested']}")
    assert early["stage"] == "requested"
    assert set(results(early).values()) == {"not_judged"}
    later = explanation(house, run["runId"], at=f"pos:{at['SessionCreated'] - 1}")
    assert results(later)["allow_agents"] == "passed"
    assert results(later)["tool_policy"] == "not_judged"
    before = {"at": f"pos:{at['SpawnRequested'] - 1}"}
    answer = house.http.get(f"/v1/runs/{run['runId']}/explain", params=before)
    problem_of(answer, 404, "not_found")


@pytest.mark.server
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


@pytest.mark.server
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


@pytest.mark.server
def test_what_was_asked_for_and_is_no_name_is_told_to_who_may_read_texts(house: House) -> None:
    requester = house.session("reader-asks")
    words = {"thinking": "as hard as you can, please", "model": "the best one there is"}
    body = {"requester": {"sessionKey": requester}, "task": "hello", **words}
    refused = house.http.post("/v1/spawns", json=body).json()
    assert refused["rule"] == "thinking"
    assert explanation(house, refused["runId"])["given"] == {**NOTHING, **words}
    accepted = house.ended(requester, agentId="talker")
    assert explanation(house, accepted["runId"])["given"] == NOTHING
