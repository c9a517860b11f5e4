"""A client that drops the connection cancels nothing, and finds what became of its request."""

import json
import uuid

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, replayed, spawn_head
from tests.support.http.wire import Authority
from tests.support.servers.http_server import GHOST, House
from tests.support.servers.running_server import wait_for

pytestmark = pytest.mark.server


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
