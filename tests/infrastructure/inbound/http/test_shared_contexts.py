"""What a session shares with its family: spawned, inherited, patched, read, and refused."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.sharing import given, patched, prompt, shared
from tests.support.http.wire import client_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

GOAL = {"projectGoal": "Build a modern web app", "targetAudience": "Developers"}
SHOWN = '[Shared Context]:\n- projectGoal: "Build a modern web app"\n- targetAudience: "Developers"'


def test_what_is_for_one_child_is_seen_by_no_other(house: House) -> None:
    session = house.session()
    only = house.ended(session, sharedContext=GOAL, sharedContextScope="child")
    assert given(house, only["runId"])["values"] == GOAL
    other = house.ended(session)
    assert given(house, other["runId"])["values"] == {}
    assert "[Shared Context]" not in prompt(house, other["runId"])
    assert shared(house, session)["version"] == 0


def test_what_is_for_one_child_is_for_those_below_it_too(house: House) -> None:
    session = house.session()
    with house.held(session, sharedContext=GOAL, sharedContextScope="child") as child:
        below = house.ended(child.child, agentId="main")
        assert given(house, below["runId"])["values"] == GOAL
    assert shared(house, session)["values"] == {}


def test_a_child_for_whom_it_grew_too_large_does_not_start_and_says_so(house: House) -> None:
    session = house.session()
    held = house.spawn(session, agentId="holder", label="held").json()["runId"]
    house.gates.wait(held)
    own = {"own": "x" * 40_000}
    late = house.spawn(
        session, sharedContext=own, sharedContextScope="child", dependsOn=["held"], label="late"
    ).json()["runId"]
    assert patched(house, session, grown="y" * 40_000).status_code == 200
    house.gates.open(held)
    run = house.server.run(late, "announced")
    assert (run["outcome"], run["startedAt"]) == ("error", None)
    events = house.http.get(f"/v1/runs/{late}/events").json()["items"]
    reasons = [one["payload"]["reason"] for one in events if one["type"] == "RunEnded"]
    assert reasons == ["shared_context"]
    assert "would have 80021 bytes and may have 65536" in run["error"]
    inbox = house.server.inbox(session)
    assert [run["error"] in one["text"] for one in inbox if one["runId"] == late] == [True]
    problem_of(house.http.get(f"/v1/runs/{late}/shared-context"), 409, "not_started")


def test_a_refused_spawn_shares_nothing(house: House) -> None:
    session = house.session()
    problem_of(house.spawn(session, agentId="ghost", sharedContext=GOAL), 422, "spawn_error")
    house.ended(session)
    assert shared(house, session)["values"] == {}


def test_the_owner_patches_and_children_at_work_keep_what_they_have(house: House) -> None:
    session = house.session()
    with house.held(session, sharedContext=GOAL | {"deep": {"a": 1, "b": 2}}) as child:
        version = shared(house, session)["version"]
        answer = patched(
            house, session, f'"{version}"', targetAudience=None, deep={"b": None, "c": 3}, new="n"
        )
        assert answer.status_code == 200, answer.text
        expected = {"projectGoal": GOAL["projectGoal"], "deep": {"a": 1, "c": 3}, "new": "n"}
        assert answer.json()["values"] == expected
        assert answer.json()["sources"]["new"]["by"] == "admin"
        assert answer.headers["etag"] == f'"{answer.json()["version"]}"'
        assert given(house, child.run_id)["values"] == GOAL | {"deep": {"a": 1, "b": 2}}
    assert given(house, house.ended(session)["runId"])["values"] == expected


def test_of_two_patches_for_one_version_the_second_is_too_late(house: House) -> None:
    session = house.session()
    first = patched(house, session, '"0"', a=1)
    assert first.status_code == 200, first.text
    problem = problem_of(patched(house, session, '"0"', b=2), 412, "precondition_failed")
    assert problem["current"] == first.json()["version"]
    again = patched(house, session, first.headers["etag"], a=1)
    assert again.json()["version"] == first.json()["version"], "it changes nothing"
    assert patched(house, session, b=2).json()["values"] == {"a": 1, "b": 2}


def test_patches_for_any_version_all_come_in_whoever_is_first(house: House) -> None:
    session = house.session()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: patched(house, session, **{f"k{n}": n}), range(24)))
    assert [one.status_code for one in answers] == [200] * 24
    assert shared(house, session)["values"].keys() == {f"k{n}" for n in range(24)}


def test_a_key_that_a_child_inherited_can_be_taken_away_below_it(house: House) -> None:
    session = house.session()
    with house.held(session, sharedContext=GOAL) as child:
        with house.with_token(child.token) as own:
            assert patched(house, child.child, client=own, projectGoal=None).status_code == 200
            problem_of(patched(house, session, client=own, projectGoal=None), 403, "not_permitted")
            assert own.get(f"/v1/sessions/{session}/shared-context").status_code in (403, 404)
        below = house.ended(child.child, agentId="main")
        assert given(house, below["runId"])["values"] == {"targetAudience": "Developers"}
    assert shared(house, session)["values"] == GOAL


def test_a_run_that_goes_on_sees_what_was_shared_since(house: House) -> None:
    session = house.session()
    first = house.ended(session, sharedContext=GOAL)
    patched(house, session, more="later", targetAudience=None)
    sent = house.http.post(f"/v1/runs/{first['runId']}/messages", json={"message": "go on"})
    assert sent.status_code in (200, 201, 202), sent.text
    run_id = sent.json()["runId"]
    house.server.run(run_id, "announced")
    assert list(given(house, run_id)["values"].items()) == [*GOAL.items(), ("more", "later")]
    assert given(house, first["runId"])["values"] == GOAL


def test_a_session_that_goes_on_when_nothing_is_shared_any_more_has_nothing(house: House) -> None:
    session = house.session()
    patched(house, session, goal="win")
    first = house.ended(session)
    child = first["childSessionKey"]
    assert shared(house, child)["values"] == {"goal": "win"}
    patched(house, session, goal=None)
    sent = house.http.post(f"/v1/runs/{first['runId']}/messages", json={"message": "go on"})
    run = house.server.run(sent.json()["runId"], "announced")
    assert given(house, run["runId"])["values"] == {}
    assert shared(house, child)["values"] == {}


def test_a_run_that_has_not_started_was_given_nothing_yet(house: House) -> None:
    problem = problem_of(house.spawn(house.session(), agentId="ghost"), 422, "spawn_error")
    answer = house.http.get(f"/v1/runs/{problem['runId']}/shared-context")
    problem_of(answer, 409, "not_started")


def test_who_may_write_and_not_read_is_told_no_value(house: House) -> None:
    session = f"agent:main:spawner-{house.session().rsplit(':', 1)[1]}"
    whole = patched(house, session, goal="a canary", other=[1])
    assert whole.json()["values"] == {"goal": "a canary", "other": [1]}
    assert whole.json()["sizes"] == {"goal": 10, "other": 3}
    with client_of(house.server.url, house.secrets["spawner"]) as client:
        changes: list[dict[str, Any]] = [{"other": None, "more": "x"}, {}]
        for values in changes:
            answer = patched(house, session, client=client, **values)
            assert answer.status_code == 200, answer.text
            body = answer.json()
            assert set(body) == {"sessionKey", "version", "position", "sizes"}
            assert body["sizes"] == {"goal": 10, "more": 3}
            assert answer.headers["etag"] == f'"{body["version"]}"'
            assert "canary" not in answer.text
        path = f"/v1/sessions/{session}/shared-context"
        assert problem_of(client.get(path), 403, "not_permitted")["detail"].endswith('"content"')
    assert shared(house, session)["values"] == {"goal": "a canary", "more": "x"}
