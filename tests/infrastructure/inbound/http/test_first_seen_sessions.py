"""What a session tells of the moment it was first seen, and that it stays so."""

from typing import Any

import pytest

from tests.support.servers.http_server import ONE, House

pytestmark = pytest.mark.server


def session_of(house: House, key: str) -> dict[str, Any]:
    answer = house.http.get(f"/v1/sessions/{key}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_session_tells_on_whose_word_it_was_first_seen(house: House) -> None:
    key = house.session("asserted")
    requester = {"sessionKey": key, "sandboxed": True, "agentIdOverride": "boxed"}
    body = {"requester": requester, "task": "hello", "agentId": "boxed"}
    answer = house.http.post("/v1/spawns", json=body)
    assert answer.status_code == 201, answer.text
    session = session_of(house, key)
    assert (session["assertedBy"], session["depthFrom"]) == ("admin", "shape")
    assert (session["agentId"], session["sandboxed"]) == ("boxed", True)
    assert session["assertions"] == ["agentId", "sandboxed"]
    assert session["workspaceDir"] is None
    child = session_of(house, answer.json()["childSessionKey"])
    assert (child["assertedBy"], child["assertions"], child["depthFrom"]) == ("spawn", [], "spawn")
    run = house.server.run(answer.json()["runId"])
    assert child["workspaceDir"] == run["workspaceDir"]
    assert child["sandboxed"] is run["sandboxed"] is True


def test_what_a_request_says_later_of_a_session_changes_nothing_of_it(house: House) -> None:
    key = house.session("settled")
    house.ended(key)
    session = session_of(house, key)
    assert (session["sandboxed"], session["assertions"]) == (False, [])
    requester = {"sessionKey": key, "sandboxed": True, "agentIdOverride": "narrow"}
    house.http.post("/v1/spawns", json={"requester": requester, "task": "hello"})
    later = session_of(house, key)
    same = ("agentId", "sandboxed", "assertions", "assertedBy", "depthFrom", "depth")
    assert [later[name] for name in same] == [session[name] for name in same]


def test_a_token_cannot_make_its_session_another_agents(house: House) -> None:
    requester = {"sessionKey": ONE, "agentIdOverride": "boxed"}
    with house.with_token(house.secrets["one"]) as http:
        answer = http.post("/v1/spawns", json={"requester": requester, "task": "hello"})
    assert answer.status_code == 403, answer.text
    assert answer.json()["code"] == "not_permitted"
    assert 'does not act for agent "boxed"' in answer.json()["detail"]
    recorded = house.http.get(f"/v1/sessions/{ONE}").json()
    assert recorded.get("agentId", "main") == "main"


def test_what_is_no_agent_id_is_not_bent_into_one(house: House) -> None:
    requester = {"sessionKey": house.session("bent"), "agentIdOverride": "Agent not found: xyz"}
    answer = house.http.post("/v1/spawns", json={"requester": requester, "task": "hello"})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == "/requester/agentIdOverride"


def test_a_session_leaves_no_sandbox_by_saying_that_it_is_another_agent(house: House) -> None:
    key = "agent:boxed:escape"
    requester = {"sessionKey": key, "agentIdOverride": "main"}
    answer = house.http.post("/v1/spawns", json={"requester": requester, "task": "hello"})
    assert answer.status_code == 403, answer.text
    assert answer.json()["rule"] == "sandbox"
    assert session_of(house, key)["sandboxed"] is True
