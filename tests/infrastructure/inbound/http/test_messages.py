"""Messages to sessions: what is taken, what is refused, and what a repeat is told."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.http_server import GHOST, House

pytestmark = pytest.mark.server

BYTES_MAX = 8_388_608
NOBODY = "0f7ba0d0-3b5e-4c0f-9d5a-0c1de0f5a001"


def send(
    client: httpx2.Client, run_id: str, message: Any = "and then?", *, key: str | None = None
) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(f"/v1/runs/{run_id}/messages", json={"message": message}, headers=headers)


def said(house: House, run_id: str, content: bytes) -> httpx2.Response:
    """The body as it stands."""
    headers = {"Content-Type": "application/json"}
    return house.http.post(f"/v1/runs/{run_id}/messages", content=content, headers=headers)


@pytest.fixture
def first(house: House) -> Iterator[dict[str, Any]]:
    """The announced run of a child; whatever is sent to it, it is by itself again at the end."""
    run = house.ended(house.session("asks"), label="one")
    yield run
    (own, *_) = house.http.get(f"/v1/sessions/{run['childSessionKey']}").json()["ownRuns"]
    house.server.run(own["runId"], "announced")


@pytest.fixture
def untouched(house: House, first: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same, and nothing may be recorded of it."""
    path = f"/v1/sessions/{first['childSessionKey']}"
    before = house.http.get(path).json(), len(house.runs(first["requesterSessionKey"]))
    yield first
    after = house.http.get(path).json(), len(house.runs(first["requesterSessionKey"]))
    assert after == before


def test_a_message_becomes_a_run_of_the_same_session(house: House, first: dict[str, Any]) -> None:
    answer = send(house.http, first["runId"])
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert told == {
        "status": "accepted",
        "runId": told["runId"],
        "continues": first["runId"],
        "childSessionKey": first["childSessionKey"],
        "sessionId": first["sessionId"],
        "modelApplied": None,
        "warnings": [],
    }
    assert answer.headers["location"] == f"/v1/runs/{told['runId']}"
    assert int(answer.headers["spawnlog-position"]) > 0
    run = house.server.run(told["runId"], "announced")
    same = ("childSessionKey", "sessionId", "requesterSessionKey", "label", "depth", "agentId")
    assert {name: run[name] for name in same} == {name: first[name] for name in same}
    assert (run["task"], run["continues"]) == ("and then?", first["runId"])
    assert (run["resultText"], run["outcome"]) == ("done", "success")
    assert house.server.run(first["runId"])["continues"] is None
    events = house.http.get(f"/v1/runs/{told['runId']}/events").json()["items"]
    assert [one["type"] for one in events][:3] == [
        "MessageReceived",
        "ContinuationPlanned",
        "RunQueued",
    ]
    assert "and then?" not in str(events)


def test_every_run_of_a_session_stands_for_it(house: House, first: dict[str, Any]) -> None:
    second = send(house.http, first["runId"]).json()["runId"]
    house.server.run(second, "announced")
    third = send(house.http, first["runId"]).json()
    assert third["continues"] == second


@pytest.mark.parametrize("message", ["", "\n\t\r \u00a0\u2003"])
def test_a_message_has_to_say_something(
    house: House, untouched: dict[str, Any], message: str
) -> None:
    problem = problem_of(send(house.http, untouched["runId"], message), 422, "invalid_request")
    assert pointers_of(problem) == ["/message"]


def test_a_message_has_a_limit_in_bytes(house: House, first: dict[str, Any]) -> None:
    largest = "é" * (BYTES_MAX // 2)
    problem = problem_of(send(house.http, first["runId"], largest + "x"), 413, "too_large")
    assert str(BYTES_MAX) in problem["detail"]
    assert house.http.get(f"/v1/sessions/{first['childSessionKey']}").json()["ownRuns"] == [
        {"runId": first["runId"], "stage": "announced", "continues": None}
    ]
    answer = send(house.http, first["runId"], largest)
    assert answer.status_code == 201, answer.text[:500]
    assert house.server.run(answer.json()["runId"], "announced")["task"] == largest


def test_a_run_that_is_over_is_not_steered(house: House, untouched: dict[str, Any]) -> None:
    answer = house.http.post(
        f"/v1/runs/{untouched['runId']}/messages", json={"message": "x", "mode": "steer"}
    )
    assert (answer.status_code, answer.json()["status"]) == (200, "done")


def test_a_spawn_that_was_refused_has_no_session(house: House) -> None:
    problem = problem_of(house.spawn(house.session(), agentId=GHOST), 422, "spawn_error")
    answer = send(house.http, problem["runId"], key="no-session")
    assert problem["runId"] in problem_of(answer, 409, "no_session")["detail"]
    assert problem_of(answer, 409, "no_session")["retryable"] is False


def test_a_spawn_that_is_being_prepared_has_no_session_yet(house: House, label: str) -> None:
    session = house.session()
    body: dict[str, Any] = {"agentId": "pondering", "label": label}
    with ThreadPoolExecutor(1) as pool:
        spawned = pool.submit(house.spawn, session, **body)
        house.gates.wait(label)
        (run,) = house.runs(session)
        problem_of(send(house.http, run["runId"]), 409, "no_session")
        house.gates.open(label)
        assert spawned.result().status_code == 201
    house.server.run(run["runId"], "announced")
    assert send(house.http, run["runId"]).status_code == 201


def test_a_message_to_a_session_at_work_waits_and_is_answered_so_again(house: House) -> None:
    with house.held(house.session("asks")) as held:
        key = a_key()
        answer = send(house.http, held.run_id, key=key)
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")
        run_id = answer.json()["runId"]
        assert house.http.get(f"/v1/runs/{run_id}").json()["status"] == "waiting"
        again = send(house.http, held.run_id, key=key)
        assert (again.status_code, again.json()["runId"], replayed(again)) == (202, run_id, True)
    house.gates.wait(run_id)
    assert house.server.run(run_id)["continues"] == held.run_id
    house.gates.open(run_id)
    house.server.run(run_id, "announced")


def test_what_the_requester_reads_of_it_is_in_its_inbox_once_a_run(
    house: House, first: dict[str, Any]
) -> None:
    second = send(house.http, first["runId"]).json()["runId"]
    house.server.run(second, "announced")
    items = house.server.inbox(first["requesterSessionKey"])
    assert [one["runId"] for one in items] == [first["runId"], second]
