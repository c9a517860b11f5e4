"""Who may be spawned, and who holds or waits for a slot."""

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def test_without_a_requester_it_is_the_main_session(house: House) -> None:
    body = house.get("/v1/agents")
    assert body["requester"] == "main"
    assert body == house.get("/v1/agents", requester="main")


def test_the_agent_on_record_outranks_the_one_in_the_key(house: House) -> None:
    key = house.session("narrowed")
    requester = {"sessionKey": key, "agentIdOverride": "narrow"}
    body = {"requester": requester, "task": "hello", "agentId": "narrow"}
    assert house.http.post("/v1/spawns", json=body).status_code == 201
    session = house.get(f"/v1/sessions/{key}")
    assert (session["agentId"], session["assertions"]) == ("narrow", ["agentId"])
    for spelling in (key, key.upper(), session["sessionId"]):
        told = house.get("/v1/agents", requester=spelling)
        assert (told["requester"], told["allowAny"]) == ("narrow", False)
        assert [agent["id"] for agent in told["agents"]] == ["narrow"]


def test_a_child_is_told_the_agents_of_its_own_session(house: House) -> None:
    with house.held(house.session()) as run, house.with_token(run.token) as client:
        told = client.get("/v1/agents", params={"requester": "current"}).json()
    assert told["requester"] == "holder"
    assert told["agents"][0]["id"] == "holder"


def test_a_token_is_told_of_the_sessions_that_it_covers_alone(house: House) -> None:
    own = house.ended(house.session("reader"))
    covered = (own["requesterSessionKey"], own["childSessionKey"], house.session("reader"))
    with house.with_token(house.secrets["reader"]) as client:
        for key in covered:
            answer = client.get("/v1/agents", params={"requester": key})
            assert answer.status_code == 200, answer.text
        for key in ("agent:narrow:x", house.session("stranger")):
            answer = client.get("/v1/agents", params={"requester": key})
            problem_of(answer, 404, "not_found")


def test_limit_of_lanes_is_kept(house: House) -> None:
    with house.held(house.session()) as run, house.held(run.child) as below:
        house.server.run(below.run_id, "started")
        depths = [lane["depth"] for lane in house.get("/v1/lanes")["items"]]
        assert depths == [1, 2]
        assert len(house.get("/v1/lanes", limit=1)["items"]) == 1
