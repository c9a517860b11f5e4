"""What a session tells of the moment it was first seen, and that it stays so."""

from typing import Any

import pytest

from tests.support.http_house import House

pytestmark = pytest.mark.slow


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
