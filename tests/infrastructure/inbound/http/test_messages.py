"""Messages to sessions: accepted, refused, and repeated."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import a_key, replayed, spawn_body
from tests.support.servers.http_server import GHOST
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

BYTES_MAX = 8_388_608
CHILDREN_MAX = 5


def send(
    client: httpx2.Client, run_id: str, message: str = "and then?", *, key: str = "", **more: str
) -> httpx2.Response:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"message": message, **more}
    return client.post(f"/v1/runs/{run_id}/messages", json=body, headers=headers)


def stop(client: httpx2.Client, key: str) -> httpx2.Response:
    return client.post(f"/v1/sessions/{key}/stop", json={})


@pytest.fixture
def first(server: Server) -> Iterator[dict[str, Any]]:
    """Yield the announced run of a child, which is alone again at the end."""
    run = server.announced(session=server.new_session("asks"), label="one")
    yield run
    (own, *_) = server.get(f"/v1/sessions/{run['childSessionKey']}")["ownRuns"]
    server.run(own["runId"], "announced")


def test_message_becomes_run_of_same_session(server: Server, first: dict[str, Any]) -> None:
    answer = send(server.http, first["runId"])
    assert answer.status_code == 201, answer.text
    result = answer.json()
    assert result == {
        "status": "accepted",
        "runId": result["runId"],
        "continues": first["runId"],
        "childSessionKey": first["childSessionKey"],
        "sessionId": first["sessionId"],
        "modelApplied": None,
        "warnings": [],
    }
    assert answer.headers["location"] == f"/v1/runs/{result['runId']}"
    assert int(answer.headers["spawnlog-position"]) > 0
    run = server.run(result["runId"], "announced")
    same = ("childSessionKey", "sessionId", "requesterSessionKey", "label", "depth", "agentId")
    assert {name: run[name] for name in same} == {name: first[name] for name in same}
    assert (run["task"], run["continues"]) == ("and then?", first["runId"])
    assert (run["resultText"], run["outcome"]) == ("done", "success")
    events = server.recorded(result["runId"])
    types = [event["type"] for event in events]
    assert types[:3] == ["MessageReceived", "ContinuationPlanned", "RunQueued"]
    assert "and then?" not in str(events)
    # A message to any run of a session continues the session.
    third = send(server.http, first["runId"]).json()
    assert third["continues"] == result["runId"]
    server.run(third["runId"], "announced")
    inbox = server.inbox(first["requesterSessionKey"])
    assert [run["runId"] for run in inbox] == [first["runId"], result["runId"], third["runId"]]


def test_message_that_cannot_be_taken_records_nothing(
    server: Server, first: dict[str, Any]
) -> None:
    largest = "é" * (BYTES_MAX // 2)
    for message in ("", "\n\t\r \u00a0\u2003"):
        problem = problem_of(send(server.http, first["runId"], message), 422, "invalid_request")
        assert pointers_of(problem) == ["/message"]
    problem = problem_of(send(server.http, first["runId"], largest + "x"), 413, "too_large")
    assert str(BYTES_MAX) in problem["detail"]
    over = send(server.http, first["runId"], mode="steer")
    assert (over.status_code, over.json()["status"]) == (200, "done")
    assert server.get(f"/v1/sessions/{first['childSessionKey']}")["ownRuns"] == [
        {"runId": first["runId"], "stage": "announced", "continues": None}
    ]
    answer = send(server.http, first["runId"], largest)
    assert answer.status_code == 201, answer.text[:500]
    assert server.run(answer.json()["runId"], "announced")["task"] == largest


def test_run_without_session_takes_no_message(server: Server, label: str) -> None:
    refused = problem_of(
        server.spawn(session=server.new_session(), agentId=GHOST), 422, "spawn_error"
    )["runId"]
    problem = problem_of(send(server.http, refused), 409, "no_session")
    assert refused in problem["detail"]
    assert problem["retryable"] is False
    session = server.new_session()
    with ThreadPoolExecutor(1) as pool:
        body: dict[str, Any] = {"agentId": "pondering", "label": label}
        spawned = pool.submit(server.spawn, session=session, **body)
        server.began(label)
        (run,) = server.runs(requester=session)
        problem_of(send(server.http, run["runId"]), 409, "no_session")
        server.let_go(label)
        assert spawned.result().status_code == 201
    server.run(run["runId"], "announced")
    assert send(server.http, run["runId"]).status_code == 201


def test_message_to_busy_session_is_queued(server: Server) -> None:
    with server.held(server.new_session("asks")) as held:
        key = a_key()
        answer = send(server.http, held.run_id, key=key)
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")
        run_id = answer.json()["runId"]
        assert server.get(f"/v1/runs/{run_id}")["status"] == "waiting"
        again = send(server.http, held.run_id, key=key)
        assert (again.status_code, again.json()["runId"], replayed(again)) == (202, run_id, True)
    server.began(run_id)
    assert server.run(run_id)["continues"] == held.run_id
    server.let_go(run_id)
    server.run(run_id, "announced")


def test_refused_message_is_recorded_and_given_again(server: Server) -> None:
    requester, key = server.new_session("crowded"), a_key()
    first = server.announced(session=requester)
    slow = [server.accepted(session=requester, agentId="slow") for _ in range(CHILDREN_MAX)]
    answer = send(server.http, first["runId"], key=key)
    problem = problem_of(answer, 403, "spawn_forbidden")
    assert problem["rule"] == "active_children"
    assert problem["current"] == problem["limit"] == CHILDREN_MAX
    assert "retry-after" not in answer.headers
    refused = server.run(problem["runId"])
    assert (refused["stage"], refused["rule"]) == ("refused", "active_children")
    assert (refused["continues"], refused["task"]) == (first["runId"], "and then?")
    assert server.events(problem["runId"]) == ["MessageReceived", "SpawnRefused"]
    explained = server.get(f"/v1/runs/{problem['runId']}/explain")
    assert explained["refused"]["text"] == problem["detail"]
    for run_id in slow:
        server.http.post(f"/v1/runs/{run_id}/stop")
        server.run(run_id, "ended")
    again = send(server.http, first["runId"], key=key)
    assert (again.status_code, again.content, replayed(again)) == (403, answer.content, True)
    own = server.get(f"/v1/sessions/{first['childSessionKey']}")
    assert [run["runId"] for run in own["ownRuns"]] == [first["runId"]]
    # A message to the refused run continues its session too, from the accepted run.
    taken = send(server.http, problem["runId"], key=a_key())
    assert (taken.status_code, taken.json()["continues"]) == (201, first["runId"])
    server.run(taken.json()["runId"], "announced")


def run_below(client: httpx2.Client, session: str) -> dict[str, Any]:
    """Return an announced run that a session asked for with its own token."""
    answer = client.post("/v1/spawns", json=spawn_body(session, agentId="main"))
    assert answer.status_code == 201, answer.text
    path = f"/v1/runs/{answer.json()['runId']}?wait=20s&until=announced"
    return dict(client.get(path).json())


def test_child_sends_to_its_children_not_itself(server: Server) -> None:
    with server.held(server.new_session("parent")) as held:
        first = held.run_id
    server.run(first, "announced")
    second = str(send(server.http, first).json()["runId"])
    token = server.began(second)
    try:
        with server.with_token(token) as client:
            for run_id in (second, first):
                problem_of(send(client, run_id), 403, "not_permitted")
            problem_of(stop(client, held.child), 403, "not_permitted")
            session = client.get("/v1/sessions/current").json()
            assert [run["runId"] for run in session["ownRuns"]] == [second, first]
            below = run_below(client, held.child)
            answer = send(client, below["runId"])
            assert answer.status_code == 201, answer.text
            run = client.get(f"/v1/runs/{answer.json()['runId']}?wait=20s&until=announced").json()
            assert (run["continues"], run["requesterSessionKey"]) == (below["runId"], held.child)
            assert stop(client, below["childSessionKey"]).status_code == 200
    finally:
        server.let_go(second)
        server.run(second, "announced")
    with server.with_token(token) as client:
        problem_of(send(client, below["runId"]), 401, "unauthorized")


def test_token_sends_within_its_own_sessions(server: Server) -> None:
    own, foreign = (
        server.announced(session=server.new_session("reader")),
        server.announced(session=server.new_session("else")),
    )
    with server.with_token(server.secrets["controller"]) as client:
        answer = send(client, own["runId"])
        assert answer.status_code == 201, answer.text
        problem_of(send(client, foreign["runId"]), 404, "not_found")
        problem_of(stop(client, foreign["childSessionKey"]), 404, "not_found")
        server.run(answer.json()["runId"], "announced")
        assert stop(client, own["childSessionKey"]).status_code == 200
        assert stop(client, own["requesterSessionKey"]).status_code == 200
    (event,) = server.recorded(answer.json()["runId"], "MessageReceived")
    assert (event["payload"]["by"], event["actor"]["token"]) == ("controller", "controller")
