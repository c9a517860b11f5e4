"""A request that is sent twice is done once, also if its caller left."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, replayed, spawn_head
from tests.support.http.wire import Authority
from tests.support.servers.http_server import GHOST, House
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def test_without_a_key_each_request_is_its_own(house: House) -> None:
    session = house.session()
    assert house.accepted(session)["runId"] != house.accepted(session)["runId"]


def test_many_repeats_at_once_are_one_spawn(house: House) -> None:
    session, key = house.session(), a_key()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: house.spawn(session, key=key), range(12)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    accepted = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in accepted}) == 1
    assert sum(not replayed(answer) for answer in accepted) == 1
    assert len(house.runs(session)) == 1


def test_a_refusal_is_given_again(house: House) -> None:
    session, key = f"agent:narrow:{uuid.uuid4().hex}", a_key()
    first = house.spawn(session, key=key, agentId="main")
    second = house.spawn(session, key=key, agentId="main")
    problem = problem_of(first, 403, "spawn_forbidden")
    assert second.content == first.content
    assert second.headers["content-type"] == first.headers["content-type"]
    assert replayed(second)
    assert problem["rule"]
    assert [run["runId"] for run in house.runs(session)] == [problem["runId"]]


def test_a_refusal_in_preparation_is_given_again_too(house: House) -> None:
    session, key = house.session(), a_key()
    label = f"ghost-{uuid.uuid4().hex}"
    house.gates.open(label)
    first = house.spawn(session, key=key, agentId=GHOST, label=label)
    second = house.spawn(session, key=key, agentId=GHOST, label=label)
    problem_of(first, 422, "spawn_error")
    assert (second.content, replayed(second)) == (first.content, True)
    assert len(house.runs(session)) == 1


def test_what_was_invalid_is_not_given_again(house: House) -> None:
    session, key = house.session(), a_key()
    problem_of(house.spawn(session, "", key=key), 422, "invalid_request")
    assert house.spawn(session, "now with a task", key=key).status_code == 201


def test_a_key_counts_for_one_token_and_one_path(house: House) -> None:
    session, key = house.session("spawner"), a_key()
    first = house.spawn(session, key=key)
    request = json.loads(first.request.content)
    with house.with_token(house.secrets["spawner"]) as client:
        other = client.post("/v1/spawns", json=request, headers={"Idempotency-Key": key})
    assert other.status_code == 201
    assert not replayed(other)
    assert len(house.runs(session)) == 2
    run_id = first.json()["runId"]
    stopped = house.http.post(f"/v1/runs/{run_id}/stop", json={}, headers={"Idempotency-Key": key})
    assert stopped.status_code == 200
    assert not replayed(stopped)


def test_a_request_under_way_is_not_begun_again(house: House, label: str) -> None:
    session, key = house.session(), a_key()
    asked = {"agentId": "pondering", "label": label}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(house.spawn, session, key=key, **asked)
        house.gates.wait(label)
        answer = house.spawn(session, key=key, **asked)
        problem = problem_of(answer, 409, "idempotency_in_flight")
        assert problem["retryable"] is True
        assert problem["retryAfterMs"] == 1000
        assert answer.headers["retry-after"] == "1"
        (run,) = house.runs(session)
        assert problem["runId"] == run["runId"]
        problem_of(house.spawn(session, "other", key=key), 422, "idempotency_key_reused")
        house.gates.open(label)
        assert first.result().status_code == 201
    again = house.spawn(session, key=key, **asked)
    assert (again.content, replayed(again)) == (first.result().content, True)


def test_a_refusal_whose_caller_waited_is_told_to_it_alone(house: House) -> None:
    session, label = house.session(), f"ghost-{uuid.uuid4().hex}"
    house.gates.open(label)
    problem_of(house.spawn(session, agentId=GHOST, label=label), 422, "spawn_error")
    assert house.server.inbox(session) == []


def test_a_spawn_stopped_while_it_is_prepared_is_told_so_and_again(
    house: House, label: str
) -> None:
    session, key = house.session(), a_key()
    asked = {"agentId": "pondering", "label": label}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(house.spawn, session, key=key, **asked)
        house.gates.wait(label)
        (run,) = house.runs(session)
        assert house.http.post(f"/v1/runs/{run['runId']}/stop").status_code == 200
        problem = problem_of(first.result(10), 422, "spawn_error")
    assert problem["rule"] == "stopped"
    again = house.spawn(session, key=key, **asked)
    assert (again.content, replayed(again)) == (first.result().content, True)


def test_a_key_of_every_allowed_length_and_sign_is_kept_apart(house: House) -> None:
    session = house.session()
    keys = ["x" * 255, "x" * 254, "é", "É", "'; drop table idempotency; --"]
    for key in keys:
        body = json.dumps({"requester": {"sessionKey": session}, "task": "x"}).encode()
        headers = {
            b"Content-Type": b"application/json",
            b"Idempotency-Key": key.encode("latin-1"),
        }
        first = house.http.post("/v1/spawns", content=body, headers=headers)
        again = house.http.post("/v1/spawns", content=body, headers=headers)
        assert first.status_code in (201, 403), first.text
        assert again.content == first.content
        house.server.run(first.json()["runId"], "ended")
    assert len(house.runs(session)) >= len(keys) - 1


def test_a_spawn_that_hangs_in_its_script_holds_up_no_other(house: House, label: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(house.spawn, house.session(), agentId="pondering", label=label)
        house.gates.wait(label)
        assert house.ended(house.session())["outcome"] == "success"
        assert not hanging.done()
        house.gates.open(label)
        assert hanging.result().status_code == 201


def leave_in_the_middle(house: House, key: str, **fields: object) -> bytes:
    """Send a spawn, wait until its script runs, and close the connection. Gives the body."""
    body = {"task": "hello", **fields}
    content = json.dumps(body).encode()
    sent = spawn_head(house, Content_Length=str(len(content)), Idempotency_Key=key)
    with Authority.of(house.server.url).connect() as connection:
        connection.sendall(sent + content)
        house.gates.wait(str(fields["label"]))
    return content


def test_a_spawn_whose_caller_left_is_complete_under_its_key(house: House, label: str) -> None:
    session, key = house.session(), a_key()
    requester = {"sessionKey": session}
    sent = leave_in_the_middle(house, key, requester=requester, agentId="pondering", label=label)
    problem_of(house.post(sent, Idempotency_Key=key), 409, "idempotency_in_flight")
    house.gates.open(label)
    (run,) = house.runs(session)
    assert house.server.run(run["runId"], "announced")["outcome"] == "success"
    answer = house.post(sent, Idempotency_Key=key)
    assert answer.status_code == 201
    assert replayed(answer)
    assert answer.json()["runId"] == run["runId"]
    assert len(house.server.inbox(session)) == 1


@pytest.mark.parametrize("task", ["hello", "x" * 300_000], ids=["short", "long"])
def test_a_refusal_whose_caller_left_is_told_in_the_inbox(house: House, task: str) -> None:
    session, key, label = house.session(), a_key(), f"ghost-{uuid.uuid4().hex}"
    requester = {"sessionKey": session}
    sent = leave_in_the_middle(
        house, key, requester=requester, agentId=GHOST, label=label, task=task
    )
    house.gates.open(label)
    (told,) = wait_for("the refusal to be told", lambda: house.server.inbox(session))
    (run,) = house.runs(session)
    assert run["stage"] == "refused"
    assert told["runId"] == run["runId"]
    assert told["status"] == "error"
    assert "refused" in told["text"]
    answer = house.post(sent, Idempotency_Key=key)
    problem = problem_of(answer, 422, "spawn_error")
    assert replayed(answer)
    assert problem["runId"] == run["runId"]
    assert len(house.server.inbox(session)) == 1
