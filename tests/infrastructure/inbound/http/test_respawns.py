"""`POST /v1/runs/{runId}/respawn`: who may, what is carried over, and what is refused by name."""

import json
import threading
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.sharing import given, shared
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def respawn(client: httpx2.Client, run_id: str, key: str = "", **body: Any) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(f"/v1/runs/{run_id}/respawn", json=body, headers=headers)


def respawned(house: House, run_id: str, **body: Any) -> dict[str, Any]:
    answer = respawn(house.http, run_id, **body)
    assert answer.status_code == 201, answer.text
    return house.server.run(answer.json()["runId"], "announced")


def requested(house: House, run_id: str) -> dict[str, Any]:
    events = house.get(f"/v1/runs/{run_id}/events", limit=1)["items"]
    return dict(events[0]["payload"])


def test_nothing_but_what_was_changed_is_another_thing(house: House) -> None:
    body: dict[str, Any] = {
        "agentId": "talker",
        "label": "all",
        "model": "small/one",
        "thinking": "high",
        "runTimeoutSeconds": 90.5,
        "cleanup": "delete",
        "context": "isolated",
        "lightContext": True,
        "expectsCompletionMessage": False,
        "contextPreamble": "be brief",
        "sharedContext": {"goal": {"is": ["this", None, 1.5]}},
        "sharedContextScope": "child",
    }
    run = house.accepted(house.session(), "look", **body)
    again = respawned(house, run["runId"])
    then, now = requested(house, run["runId"]), requested(house, again["runId"])
    assert now["respawn"]["runId"] == run["runId"]
    assert now["respawn"]["replaced"] == []
    own = ("runId", "sessionId", "respawn", "facts", "task", "preamble", "shared", "requester")
    for name in then.keys() - set(own):
        assert now[name] == then[name], name
    for name in ("task", "preamble"):
        assert now[name]["bytes"] == then[name]["bytes"]
    (before,), (after,) = then["shared"]["keys"], now["shared"]["keys"]
    assert (before["key"], before["value"]["bytes"]) == (after["key"], after["value"]["bytes"])
    assert again["respawns"] == []


def test_free_texts_in_the_place_of_names_are_carried_over(house: House) -> None:
    refused = house.spawn(
        house.session(), agentId="No Agent!", model="two words", thinking="a lot of it"
    )
    run_id = problem_of(refused, 422, "spawn_error")["runId"]
    again = problem_of(respawn(house.http, run_id), 422, "spawn_error")
    assert again["rule"] == "agent_id"
    assert again["detail"] == refused.json()["detail"]
    texts = house.get(f"/v1/runs/{again['runId']}/explain")["given"]
    assert (texts["agentId"], texts["model"]) == ("No Agent!", "two words")
    mended = respawned(
        house, run_id, changes={"agentId": "talker", "model": None, "thinking": None}
    )
    assert mended["outcome"] == "success"


def test_what_the_family_has_been_given_is_not_given_to_it_again(house: House) -> None:
    session = house.session()
    first = house.ended(session, sharedContext={"stage": "one"})
    house.ended(session, sharedContext={"stage": "two"})
    run = respawned(house, first["runId"])
    assert shared(house, session)["values"] == {"stage": "two"}
    assert given(house, run["runId"])["values"] == {"stage": "one"}
    named = respawned(
        house,
        first["runId"],
        changes={"sharedContext": {"stage": "three"}, "sharedContextScope": "family"},
    )
    assert shared(house, session)["values"] == {"stage": "three"}
    assert named["outcome"] == "success"


def test_a_run_of_a_batch_is_respawned_alone(house: House) -> None:
    session = house.session()
    batch = house.accepted(session, task=["a", "b"], parallel=True, label="both")  # type: ignore[arg-type]
    second = batch["runs"][1]["runId"]
    run = respawned(house, second)
    assert (run["task"], run["label"], run["batchId"]) == ("b", "both-2", None)
    problem = problem_of(
        respawn(house.http, second, changes={"task": ["a", "b"], "parallel": True}),
        422,
        "invalid_request",
    )
    assert pointers_of(problem) == ["/changes/task"]


def test_it_waits_for_the_same_runs_again(house: House) -> None:
    session = house.session()
    first = house.ended(session, label="first")
    named = house.ended(session, label="named")
    waiting = house.ended(
        session,
        dependsOn=[{"run": "first", "require": "ended"}],
        chainAfter="named",
        sharedContext={"$named": "reference"},
    )
    # Another one has the label by now.
    house.ended(session, label="first")
    run = respawned(house, waiting["runId"])
    assert {(one["runId"], one["require"], one["state"]) for one in run["dependsOn"]} == {
        (first["runId"], "ended", "met"),
        (named["runId"], "success", "met"),
    }
    assert "named" in given(house, run["runId"])["values"]
    without = respawned(house, waiting["runId"], changes={"dependsOn": None})
    assert [one["runId"] for one in without["dependsOn"]] == [named["runId"]]


@pytest.mark.parametrize(
    ("body", "rule", "named"),
    [
        ({"dependsOn": ["first", "later"]}, "dependency_unknown", {"first", "later"}),
        ({"chainAfter": {"run": "later", "require": "ended"}}, "dependency_unknown", {"later"}),
        ({"sharedContext": {"$later": "reference", "k": "v"}}, "reference_unknown", {"later"}),
        ({"sharedContext": {"$later": "reference"}}, "reference_unknown", {"later"}),
    ],
)
def test_what_was_refused_for_a_name_is_refused_for_it_again_until_there_is_such_a_run(
    house: House, body: dict[str, Any], rule: str, named: set[str]
) -> None:
    session = house.session()
    house.ended(session, label="first")
    refused = problem_of(house.spawn(session, **body), 422, "spawn_error")
    assert refused["rule"] == rule
    shown = house.server.run(refused["runId"])["dependsOn"]
    assert {(one["name"], one["runId"], one["state"]) for one in shown} == {
        (name, None, "unmet") for name in named
    }
    explained = house.get(f"/v1/runs/{refused['runId']}/explain")["given"]
    assert all(name in explained["dependencies"] for name in named)
    again = problem_of(respawn(house.http, refused["runId"]), 422, "spawn_error")
    assert (again["rule"], again["detail"]) == (rule, refused["detail"])
    assert requested(house, again["runId"])["respawn"]["replaced"] == []
    house.ended(session, label="later")
    for run_id in (refused["runId"], again["runId"]):
        run = respawned(house, run_id)
        found = {(one["name"], one["require"], one["state"]) for one in run["dependsOn"]}
        require = "ended" if "chainAfter" in body else "success"
        assert found == {(name, require, "met") for name in named}
        assert run["outcome"] == "success"
        if "sharedContext" in body:
            assert set(given(house, run["runId"])["values"]) == {
                key.removeprefix("$") for key in body["sharedContext"]
            }


def test_a_name_that_stands_for_several_and_the_names_beside_it_are_looked_up_again(
    house: House,
) -> None:
    session = house.session()
    house.ended(session, label="twin")
    house.ended(session, label="twin")
    body: dict[str, Any] = {"dependsOn": ["twin"], "sharedContext": {"$later": "reference"}}
    refused = problem_of(house.spawn(session, **body), 422, "spawn_error")
    again = problem_of(respawn(house.http, refused["runId"]), 422, "spawn_error")
    assert again["rule"] == refused["rule"] == "dependency_ambiguous"
    without = respawn(house.http, refused["runId"], changes={"dependsOn": None})
    assert problem_of(without, 422, "spawn_error")["rule"] == "reference_unknown"


def test_names_are_asked_for_again_though_another_rule_had_refused_first(house: House) -> None:
    session = house.session()
    refused = problem_of(
        house.spawn(session, agentId="No Agent!", dependsOn=["later"]), 422, "spawn_error"
    )
    assert refused["rule"] == "agent_id"
    again = respawn(house.http, refused["runId"], changes={"agentId": "talker"})
    assert problem_of(again, 422, "spawn_error")["rule"] == "dependency_unknown"


def test_a_name_that_stands_for_no_run_is_free_text_and_in_no_event(house: House) -> None:
    session, name = house.session(), "a secret that nobody is called 💧"
    refused = problem_of(house.spawn(session, dependsOn=[name]), 422, "spawn_error")
    events = house.http.get(f"/v1/runs/{refused['runId']}/events", params={"limit": 9}).text
    assert name not in events
    listed = house.http.get("/v1/runs", params={"requester": session}).text
    assert name not in json.loads(listed)["items"][0]["dependsOn"]
    assert house.server.run(refused["runId"])["dependsOn"][0]["name"] == name


def test_a_run_that_a_message_began_is_refused_by_name(house: House) -> None:
    run = house.ended(house.session())
    sent = house.http.post(f"/v1/runs/{run['runId']}/messages", json={"message": "and now?"})
    assert sent.status_code in (200, 201, 202), sent.text
    later = house.server.run(sent.json()["runId"], "announced")
    problem = problem_of(respawn(house.http, later["runId"]), 409, "cannot_respawn")
    assert run["runId"] in problem["detail"]
    assert respawned(house, run["runId"])["outcome"] == "success"


def test_a_run_that_is_at_work_is_respawned_beside_it(house: House) -> None:
    session = house.session()
    with house.held(session) as held:
        run = respawned(house, held.run_id, changes={"agentId": "talker"})
        assert run["respawnedFrom"] == held.run_id
        began = respawn(house.http, held.run_id, transcript={"upTo": 2})
        text = problem_of(began, 409, "cannot_respawn")["detail"]
        assert "ends at entry 1 by now" in text


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"changes": {"tusk": "x"}}, "/changes/tusk"),
        ({"changes": {"task": None}}, "/changes/task"),
        ({"changes": {"task": "  "}}, "/changes/task"),
        ({"changes": {"task": ["a"]}}, "/changes/task"),
        ({"changes": {"label": "a\u001b[31m"}}, "/changes/label"),
        ({"changes": {"requester": None}}, "/changes/requester"),
        ({"changes": {"requester": "main"}}, "/changes/requester"),
        ({"changes": {"tusk": None}}, "/changes/tusk"),
        ({"changes": {"requester": {"sessionKey": None}}}, "/changes/requester/sessionKey"),
        ({"changes": {"requester": {"sessionKey": 5}}}, "/changes/requester/sessionKey"),
        ({"changes": {"requester": {"chanel": None}}}, "/changes/requester/chanel"),
        ({"changes": {"attachAs": {"mountPth": None}}}, "/changes/attachAs/mountPth"),
        ({"changes": {"requester": {"sessionKey": "a" * 3000}}}, "/changes/requester/sessionKey"),
        ({"changes": {"requester": {"workspaceDir": "../x"}}}, "/changes/requester/workspaceDir"),
        ({"changes": {"sharedContext": {"$x": 1}}}, "/changes/sharedContext/$x"),
        ({"changes": {"runTimeoutSeconds": "1"}}, "/changes/runTimeoutSeconds"),
        ({"transcript": {"upTo": 1}, "changes": {"context": "fork"}}, "/changes/context"),
    ],
)
def test_what_makes_no_request_is_refused_where_it_stands(
    house: House, body: dict[str, Any], pointer: str
) -> None:
    run = house.ended(house.session())
    answer = respawn(house.http, run["runId"], **body)
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == [pointer]
    assert house.server.run(run["runId"])["respawns"] == []


def test_who_may_spawn_for_the_session_may_respawn_and_nobody_else(house: House) -> None:
    own, foreign = house.session("spawner"), house.session("other")
    run, other = house.ended(own), house.ended(foreign)
    with house.with_token(house.secrets["spawner"]) as spawner:
        assert respawn(spawner, run["runId"]).status_code == 201
        problem_of(respawn(spawner, other["runId"]), 404, "not_found")
        to_another = {"requester": {"sessionKey": foreign}}
        problem_of(respawn(spawner, run["runId"], changes=to_another), 403, "not_permitted")
        # Its texts would come to another session, or to be read in a transcript.
        to_its_own = {"requester": {"sessionKey": house.session("spawner")}}
        problem_of(respawn(spawner, run["runId"], changes=to_its_own), 403, "not_permitted")
        problem_of(respawn(spawner, run["runId"], transcript={"upTo": 1}), 403, "not_permitted")
        problem_of(respawn(spawner, run["runId"], configRevision=1), 403, "not_permitted")
    with house.with_token(house.secrets["texts"]) as reader:
        problem_of(respawn(reader, run["runId"]), 403, "not_permitted")
    with house.with_token(house.secrets["everything"]) as administrator:
        found = respawn(administrator, run["runId"], changes=to_another, transcript={"upTo": 1})
        assert found.status_code == 201, found.text
        assert respawn(administrator, run["runId"], configRevision=1).status_code == 201
    moved = house.server.run(found.json()["runId"], "announced")
    assert (moved["requesterSessionKey"], moved["respawnedFrom"]) == (foreign, run["runId"])
    assert requested(house, moved["runId"])["respawn"]["replaced"] == ["requester"]
    with house.with_token(house.secrets["texts"]):
        assert moved["runId"] in house.server.run(run["runId"])["respawns"]


def test_lineage_shows_nothing_that_a_token_may_not_see(house: House) -> None:
    own, foreign = house.session("reader"), house.session("other")
    run = house.ended(own)
    beside = respawned(house, run["runId"])
    respawned(house, run["runId"], changes={"requester": {"sessionKey": foreign}})
    with house.with_token(house.secrets["texts"]) as reader:
        seen = reader.get(f"/v1/runs/{run['runId']}").json()
        assert seen["respawns"] == [beside["runId"]]
        listed = reader.get("/v1/runs", params={"respawnedFrom": run["runId"]}).json()["items"]
        assert [one["runId"] for one in listed] == [beside["runId"]]


def test_a_child_respawns_for_nobody_but_itself(house: House) -> None:
    session = house.session()
    sibling = house.ended(session)
    with house.held(session) as held, house.with_token(held.token) as child:
        problem_of(respawn(child, held.run_id), 403, "not_permitted")
        problem_of(respawn(child, sibling["runId"]), 403, "not_permitted")
        problem_of(respawn(child, held.run_id, configRevision=1), 403, "not_permitted")
        below = child.post(
            "/v1/spawns", json={"requester": {"sessionKey": "current"}, "task": "help"}
        )
        assert below.status_code == 201, below.text
        answer = respawn(child, below.json()["runId"], changes={"task": "help me"})
        assert answer.status_code == 201, answer.text
        assert house.server.run(answer.json()["runId"])["requesterSessionKey"] == held.child


def test_two_that_come_at_once_with_one_key_are_one(house: House) -> None:
    run = house.ended(house.session())
    answers: list[httpx2.Response] = []

    def ask() -> None:
        with house.with_token(house.server.token) as client:
            answers.append(respawn(client, run["runId"], key="race", changes={"task": "x"}))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {one.status_code for one in answers} <= {201, 409}
    assert len({one.json()["runId"] for one in answers if one.status_code == 201}) == 1
    assert len(house.server.run(run["runId"])["respawns"]) == 1


def test_files_are_given_again_or_left_out(house: House) -> None:
    run = house.accepted(house.session())
    refused = house.spawn(
        house.session(), attachments=[{"name": "a.txt", "content": "x"}], attachAs={}
    )
    run_id = problem_of(refused, 403, "spawn_forbidden")["runId"]
    problem = problem_of(respawn(house.http, run_id), 409, "cannot_respawn")
    assert "are not kept: give attachments among the changes, or null" in problem["detail"]
    without = respawned(house, run_id, changes={"attachments": None})
    assert requested(house, without["runId"])["respawn"]["replaced"] == ["attachments"]
    assert run["runId"] != without["runId"]
