"""A request that is sent twice is done once, also if its caller left."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, replayed, spawn_body, spawn_head
from tests.support.http.wire import Authority
from tests.support.servers.http_server import GHOST, House
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def test_many_repeats_at_once_are_one_spawn(house: House) -> None:
    session, key = house.session(), a_key()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: house.spawn(session, key=key), range(12)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    accepted = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in accepted}) == 1
    assert sum(not replayed(answer) for answer in accepted) == 1
    assert len(house.runs(session)) == 1
    assert house.accepted(session)["runId"] != house.accepted(session)["runId"]


@pytest.mark.parametrize(
    ("agent_id", "status", "code"), [("main", 403, "spawn_forbidden"), (GHOST, 422, "spawn_error")]
)
def test_refusal_is_given_again(house: House, agent_id: str, status: int, code: str) -> None:
    session, key = f"agent:narrow:{uuid.uuid4().hex}", a_key()
    if agent_id == GHOST:
        session = house.session()
    first, second = (house.spawn(session, key=key, agentId=agent_id) for _ in range(2))
    problem = problem_of(first, status, code)
    assert problem["rule"]
    assert (second.content, replayed(second)) == (first.content, True)
    assert second.headers["content-type"] == first.headers["content-type"]
    assert [run["runId"] for run in house.runs(session)] == [problem["runId"]]
    assert house.server.inbox(session) == []


def test_invalid_request_keeps_no_key(house: House) -> None:
    session, key = house.session(), a_key()
    problem_of(house.spawn(session, "", key=key), 422, "invalid_request")
    assert house.spawn(session, "now with a task", key=key).status_code == 201


def test_key_counts_for_one_token_and_path(house: House) -> None:
    session, key = house.session("spawner"), a_key()
    first = house.spawn(session, key=key)
    headers = {"Idempotency-Key": key}
    with house.with_token(house.secrets["spawner"]) as client:
        body = json.loads(first.request.content)
        other = client.post("/v1/spawns", json=body, headers=headers)
    stop = f"/v1/runs/{first.json()['runId']}/stop"
    stopped = house.http.post(stop, json={}, headers=headers)
    assert (other.status_code, stopped.status_code) == (201, 200)
    assert not replayed(other)
    assert not replayed(stopped)
    assert len(house.runs(session)) == 2


@pytest.mark.parametrize("is_stopped", [False, True])
def test_request_in_flight_is_not_repeated(house: House, label: str, is_stopped: bool) -> None:
    session, key = house.session(), a_key()
    body = {"agentId": "pondering", "label": label}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(house.spawn, session, key=key, **body)
        house.gates.wait(label)
        answer = house.spawn(session, key=key, **body)
        problem = problem_of(answer, 409, "idempotency_in_flight")
        assert (problem["retryable"], problem["retryAfterMs"]) == (True, 1000)
        assert answer.headers["retry-after"] == "1"
        (run,) = house.runs(session)
        assert problem["runId"] == run["runId"]
        problem_of(house.spawn(session, "other", key=key), 422, "idempotency_key_reused")
        assert house.ended(house.session())["outcome"] == "success"
        assert not first.done()
        if is_stopped:
            assert house.http.post(f"/v1/runs/{run['runId']}/stop").status_code == 200
            refused = problem_of(first.result(10), 422, "spawn_error")
            assert refused["rule"] == "stopped"
        else:
            house.gates.open(label)
            assert first.result().status_code == 201
    again = house.spawn(session, key=key, **body)
    assert (again.content, replayed(again)) == (first.result().content, True)


def test_keys_differ_in_every_character(house: House) -> None:
    session = house.session()
    keys = ["x" * 255, "x" * 254, "é", "É", "'; drop table idempotency; --"]
    for key in keys:
        headers = {
            b"Content-Type": b"application/json",
            b"Idempotency-Key": key.encode("latin-1"),
        }
        content = json.dumps(spawn_body(session)).encode()
        first, again = (
            house.http.post("/v1/spawns", content=content, headers=headers) for _ in range(2)
        )
        assert first.status_code == 201, first.text
        assert again.content == first.content
        house.server.run(first.json()["runId"], "ended")
    assert len(house.runs(session)) == len(keys)


def leave(house: House, key: str, body: dict[str, Any]) -> bytes:
    """Send a spawn, wait until its script runs, close the connection, and return the body."""
    content = json.dumps(body).encode()
    sent = spawn_head(house, Content_Length=str(len(content)), Idempotency_Key=key)
    with Authority.of(house.server.url).connect() as connection:
        connection.sendall(sent + content)
        house.gates.wait(str(body["label"]))
    return content


def test_spawn_without_its_caller_is_complete(house: House, label: str) -> None:
    session, key = house.session(), a_key()
    sent = leave(house, key, spawn_body(session, agentId="pondering", label=label))
    problem_of(house.post(sent, Idempotency_Key=key), 409, "idempotency_in_flight")
    house.gates.open(label)
    (run,) = house.runs(session)
    assert house.server.run(run["runId"], "announced")["outcome"] == "success"
    answer = house.post(sent, Idempotency_Key=key)
    assert (answer.status_code, answer.json()["runId"]) == (201, run["runId"])
    assert replayed(answer)
    assert len(house.server.inbox(session)) == 1


@pytest.mark.parametrize("task", ["hello", "x" * 300_000], ids=["short", "long"])
def test_refusal_without_its_caller_is_in_the_inbox(house: House, task: str) -> None:
    session, key, label = house.session(), a_key(), f"ghost-{uuid.uuid4().hex}"
    sent = leave(house, key, spawn_body(session, agentId=GHOST, label=label) | {"task": task})
    house.gates.open(label)
    (told,) = wait_for("the refusal to be told", lambda: house.server.inbox(session))
    (run,) = house.runs(session)
    assert run["stage"] == "refused"
    assert (told["runId"], told["status"]) == (run["runId"], "error")
    assert "refused" in told["text"]
    answer = house.post(sent, Idempotency_Key=key)
    assert problem_of(answer, 422, "spawn_error")["runId"] == run["runId"]
    assert replayed(answer)
    assert len(house.server.inbox(session)) == 1
