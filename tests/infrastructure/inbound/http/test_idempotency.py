"""A repeated request is executed once, also if its caller left."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, post_bytes, replayed, spawn_body, spawn_head
from tests.support.http.wire import Authority
from tests.support.servers.http_server import GHOST
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def test_many_repeats_at_once_are_one_spawn(server: Server) -> None:
    session, key = server.new_session(), a_key()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: server.spawn(session=session, key=key), range(12)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    accepted = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in accepted}) == 1
    assert sum(not replayed(answer) for answer in accepted) == 1
    assert len(server.runs(requester=session)) == 1
    assert server.accepted(session=session) != server.accepted(session=session)


@pytest.mark.parametrize(
    ("agent_id", "status", "code"), [("main", 403, "spawn_forbidden"), (GHOST, 422, "spawn_error")]
)
def test_refusal_is_given_again(server: Server, agent_id: str, status: int, code: str) -> None:
    session, key = f"agent:narrow:{uuid.uuid4().hex}", a_key()
    if agent_id == GHOST:
        session = server.new_session()
    first, second = (server.spawn(session=session, key=key, agentId=agent_id) for _ in range(2))
    problem = problem_of(first, status, code)
    assert problem["rule"]
    assert (second.content, replayed(second)) == (first.content, True)
    assert second.headers["content-type"] == first.headers["content-type"]
    assert [run["runId"] for run in server.runs(requester=session)] == [problem["runId"]]
    assert server.inbox(session) == []


def test_invalid_request_keeps_no_key(server: Server) -> None:
    session, key = server.new_session(), a_key()
    problem_of(server.spawn(session=session, task="", key=key), 422, "invalid_request")
    assert server.spawn(session=session, task="now with a task", key=key).status_code == 201


def test_key_counts_for_one_token_and_path(server: Server) -> None:
    session, key = server.new_session("spawner"), a_key()
    first = server.spawn(session=session, key=key)
    headers = {"Idempotency-Key": key}
    with server.with_token(server.secrets["spawner"]) as client:
        body = json.loads(first.request.content)
        second_answer = client.post("/v1/spawns", json=body, headers=headers)
    stop = f"/v1/runs/{first.json()['runId']}/stop"
    stopped = server.http.post(stop, json={}, headers=headers)
    assert (second_answer.status_code, stopped.status_code) == (201, 200)
    assert not replayed(second_answer)
    assert not replayed(stopped)
    assert len(server.runs(requester=session)) == 2


@pytest.mark.parametrize("is_stopped", [False, True])
def test_request_in_flight_is_not_repeated(server: Server, label: str, is_stopped: bool) -> None:
    session, key = server.new_session(), a_key()
    body = {"agentId": "pondering", "label": label}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(server.spawn, session=session, key=key, **body)
        server.began(label)
        answer = server.spawn(session=session, key=key, **body)
        problem = problem_of(answer, 409, "idempotency_in_flight")
        assert (problem["retryable"], problem["retryAfterMs"]) == (True, 1000)
        assert answer.headers["retry-after"] == "1"
        (run,) = server.runs(requester=session)
        assert problem["runId"] == run["runId"]
        problem_of(
            server.spawn(session=session, task="other", key=key), 422, "idempotency_key_reused"
        )
        assert server.announced(session=server.new_session())["outcome"] == "success"
        assert not first.done()
        if is_stopped:
            assert server.http.post(f"/v1/runs/{run['runId']}/stop").status_code == 200
            refused = problem_of(first.result(10), 422, "spawn_error")
            assert refused["rule"] == "stopped"
        else:
            server.let_go(label)
            assert first.result().status_code == 201
    again = server.spawn(session=session, key=key, **body)
    assert (again.content, replayed(again)) == (first.result().content, True)


def test_keys_differ_in_every_character(server: Server) -> None:
    session = server.new_session()
    keys = ["x" * 255, "x" * 254, "é", "É", "'; drop table idempotency; --"]
    for key in keys:
        headers = {
            b"Content-Type": b"application/json",
            b"Idempotency-Key": key.encode("latin-1"),
        }
        content = json.dumps(spawn_body(session)).encode()
        first, again = (
            server.http.post("/v1/spawns", content=content, headers=headers) for _ in range(2)
        )
        assert first.status_code == 201, first.text
        assert again.content == first.content
        server.run(first.json()["runId"], "ended")
    assert len(server.runs(requester=session)) == len(keys)


def leave(server: Server, key: str, body: dict[str, Any]) -> bytes:
    """Send a spawn, wait until its script runs, close the connection, and return the body."""
    content = json.dumps(body).encode()
    sent = spawn_head(server, Content_Length=str(len(content)), Idempotency_Key=key)
    with Authority.of(server.url).connect() as connection:
        connection.sendall(sent + content)
        server.began(str(body["label"]))
    return content


def test_spawn_without_its_caller_is_complete(server: Server, label: str) -> None:
    session, key = server.new_session(), a_key()
    sent = leave(server, key, spawn_body(session, agentId="pondering", label=label))
    problem_of(post_bytes(server, sent, Idempotency_Key=key), 409, "idempotency_in_flight")
    server.let_go(label)
    (run,) = server.runs(requester=session)
    assert server.run(run["runId"], "announced")["outcome"] == "success"
    answer = post_bytes(server, sent, Idempotency_Key=key)
    assert (answer.status_code, answer.json()["runId"]) == (201, run["runId"])
    assert replayed(answer)
    assert len(server.inbox(session)) == 1


@pytest.mark.parametrize("task", ["hello", "x" * 300_000], ids=["short", "long"])
def test_refusal_without_its_caller_is_in_the_inbox(server: Server, task: str) -> None:
    session, key, label = server.new_session(), a_key(), f"ghost-{uuid.uuid4().hex}"
    sent = leave(server, key, spawn_body(session, agentId=GHOST, label=label) | {"task": task})
    server.let_go(label)
    (announcement,) = wait_for("the refusal to be told", lambda: server.inbox(session))
    (run,) = server.runs(requester=session)
    assert run["stage"] == "refused"
    assert (announcement["runId"], announcement["status"]) == (run["runId"], "error")
    assert "refused" in announcement["text"]
    answer = post_bytes(server, sent, Idempotency_Key=key)
    assert problem_of(answer, 422, "spawn_error")["runId"] == run["runId"]
    assert replayed(answer)
    assert len(server.inbox(session)) == 1
