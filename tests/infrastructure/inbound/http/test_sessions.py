"""Sessions by every name they have, what is first seen of them, and what their inboxes hold."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from application.queries import sessions
from tests.support.http.problems import problem_of
from tests.support.servers.http_server import ONE, House
from tests.support.servers.inner_server import InnerServer

pytestmark = pytest.mark.server


UNKNOWN = "12345678-1234-4234-8234-123456781234"


def session_of(house: House, name: str) -> dict[str, Any]:
    return house.get(f"/v1/sessions/{quote(name, safe='')}")


def inbox_of(house: House, name: str, **query: Any) -> dict[str, Any]:
    return house.get(f"/v1/sessions/{quote(name, safe='')}/announcements", **query)


def test_the_main_session_is_found_by_its_alias(house: House) -> None:
    house.ended("main")
    assert session_of(house, "main") == session_of(house, "agent:main:main")


def test_a_key_with_slashes_is_a_name_like_any_other(house: House) -> None:
    key = f"agent:main:chat:group:spaces/{uuid.uuid4().hex}/threads/1"
    run = house.ended(key)
    assert session_of(house, key)["sessionKey"] == key
    (told,) = inbox_of(house, key)["items"]
    ack = f"/v1/sessions/{quote(key, safe='')}/announcements/{told['id']}/ack"
    assert house.http.post(ack).status_code == 200
    assert inbox_of(house, key)["items"][0]["state"] == "acknowledged"
    assert house.runs(key)[0]["runId"] == run["runId"]
    answer = house.http.get(f"/v1/sessions/{quote(key + 'x', safe='')}")
    assert problem_of(answer, 404, "not_found")["instance"].count("/") == 3


@pytest.mark.parametrize("name", ["agent:main:nobody", UNKNOWN, "nobody", "agent:none:x"])
def test_a_session_nobody_has_seen_is_not_found(house: House, name: str) -> None:
    problem = problem_of(house.http.get(f"/v1/sessions/{name}"), 404, "not_found")
    assert problem["detail"] == f'there is no session "{name}" on record'
    assert inbox_of(house, name)["items"] == []


def test_an_inbox_is_read_on_behind_a_position(house: House) -> None:
    key = house.session()
    runs = [house.ended(key)["runId"] for _ in range(4)]
    whole = inbox_of(house, key)
    assert [told["runId"] for told in whole["items"]] == runs
    assert whole["nextAfter"] is None
    last = whole["items"][-1]["position"]
    assert inbox_of(house, key, after=last)["items"] == []
    assert inbox_of(house, key, after=last - 1)["items"] == whole["items"][-1:]


def test_who_waits_is_told_when_the_first_announcement_comes(house: House) -> None:
    key = house.session()
    with ThreadPoolExecutor(2) as pool, house.held(key) as run:
        waiting = pool.submit(inbox_of, house, key, wait="20s")
        by_id = session_of(house, key)["sessionId"]
        waiting_by_id = pool.submit(inbox_of, house, by_id, wait="20s")
        for _ in range(3):
            house.ended(house.session())
        assert not waiting.done()
        house.gates.open(run.run_id)
        for told in (waiting.result(20), waiting_by_id.result(20)):
            assert [one["runId"] for one in told["items"]] == [run.run_id]


def test_a_wait_in_vain_takes_its_time_and_no_more(house: House) -> None:
    key = house.session()
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        waiting = pool.submit(inbox_of, house, key, wait="700ms")
        while not waiting.done():
            house.ended(house.session())
        taken = time.monotonic() - began
    assert waiting.result()["items"] == []
    assert 0.7 <= taken < 5


def test_a_wait_for_what_is_there_ends_at_once(house: House) -> None:
    key = house.session()
    house.ended(key)
    began = time.monotonic()
    assert len(inbox_of(house, key, wait="30s")["items"]) == 1
    assert time.monotonic() - began < 3


def test_an_acknowledgement_is_shown_and_repeating_it_changes_nothing(house: House) -> None:
    run = house.ended(house.session())
    key = run["requesterSessionKey"]
    path = f"/v1/sessions/{key}/announcements/{run['runId']}/ack"
    for _ in range(2):
        answer = house.http.post(path)
        assert answer.status_code == 200
        assert answer.json() == {"id": run["runId"], "runId": run["runId"]}
    (told,) = inbox_of(house, key)["items"]
    assert told["state"] == "acknowledged"
    assert told["acknowledgedAt"]
    assert house.server.run(run["runId"])["announcement"]["state"] == "acknowledged"
    assert house.server.events(run["runId"]).count("AnnouncementAcknowledged") == 1


def test_only_what_is_in_an_inbox_can_be_acknowledged(house: House) -> None:
    run, other = house.ended(house.session()), house.session()
    own = run["requesterSessionKey"]
    for session, run_id in ((other, run["runId"]), (own, UNKNOWN), (own, "x")):
        answer = house.http.post(f"/v1/sessions/{session}/announcements/{run_id}/ack")
        problem = problem_of(answer, 404, "not_found")
        assert problem["detail"].startswith("there is no such announcement")
    quiet = house.ended(own, expectsCompletionMessage=False)
    running = house.accepted(own, agentId="slow")
    for run_id in (quiet["runId"], running["runId"]):
        answer = house.http.post(f"/v1/sessions/{own}/announcements/{run_id}/ack")
        problem_of(answer, 409, "no_announcement")
    house.http.post(f"/v1/runs/{running['runId']}/stop")


def test_a_closed_session_spawns_no_more(house: House) -> None:
    run = house.accepted(house.session(), cleanup="delete")
    run = house.server.run(run["runId"], "archived")
    answer = house.spawn(str(run["childSessionKey"]))
    problem_of(answer, 409, "session_closed")
    assert session_of(house, str(run["childSessionKey"]))["closedAt"]


def test_an_open_session_whose_run_is_over_is_not_said_to_be_closed(house: House) -> None:
    run = house.ended(house.session())
    problem = problem_of(house.spawn(str(run["childSessionKey"])), 409, "session_closed")
    assert session_of(house, str(run["childSessionKey"]))["stage"] == "open"
    assert problem["title"] == "The session is closed or its run is over"
    assert "is over" in problem["detail"]
    assert "go on with it by a message while it is open" in problem["detail"]


def test_a_stop_is_told_to_the_requester_with_its_reason(house: House) -> None:
    key = house.session()
    run = house.accepted(key, agentId="slow")
    house.server.run(run["runId"], "started")
    answer = house.http.post(f"/v1/runs/{run['runId']}/stop", json={"reason": "enough of it"})
    assert answer.json() == {"runId": run["runId"], "wasOver": False}
    ended = house.server.run(run["runId"], "announced")
    assert (ended["outcome"], ended["status"]) == ("stopped", "stopped")
    (told,) = inbox_of(house, key)["items"]
    assert "enough of it" in told["text"]


def test_a_stop_reaches_those_below(house: House) -> None:
    with house.held(house.session()) as parent:
        with house.with_token(parent.token) as client:
            body = {"requester": {"sessionKey": parent.child}, "task": "x", "agentId": "slow"}
            below = client.post("/v1/spawns", json=body).json()["runId"]
        house.server.run(below, "started")
        assert house.http.post(f"/v1/runs/{parent.run_id}/stop").status_code == 200
        for run_id in (parent.run_id, below):
            assert house.server.run(run_id, "announced")["outcome"] == "stopped"


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


def test_of_many_runs_the_newest_are_told_also_of_those_that_were_then(
    inner: InnerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_max = 3
    monkeypatch.setattr(sessions, "OWN_RUNS_SHOWN_MAX", shown_max)
    first = inner.spawn(requester={"sessionKey": "agent:main:many"})
    runs, heads = [first["runId"]], [first["stages"][-1]["position"]]
    for _ in range(shown_max + 1):
        run = inner.run_of_message(runs[0])
        runs.append(run["runId"])
        heads.append(run["stages"][-1]["position"])

    def own_runs(query: str = "") -> list[str]:
        path = f"/v1/sessions/{first['childSessionKey']}{query}"
        return [run["runId"] for run in inner.request("GET", path).json()["ownRuns"]]

    assert own_runs() == runs[::-1][:shown_max]
    for count, head in enumerate(heads, start=1):
        assert own_runs(f"?at=pos:{head}") == runs[:count][::-1][:shown_max]
