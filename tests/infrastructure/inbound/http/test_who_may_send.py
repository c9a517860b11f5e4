"""Who may send a message to a session, and who may stop one."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import spawn_body
from tests.support.servers.http_server import HeldRun, House

pytestmark = pytest.mark.server


def send(client: httpx2.Client, run_id: str) -> httpx2.Response:
    return client.post(f"/v1/runs/{run_id}/messages", json={"message": "and then?"})


def stop(client: httpx2.Client, key: str) -> httpx2.Response:
    return client.post(f"/v1/sessions/{key}/stop", json={})


@pytest.fixture
def parent(house: House) -> Iterator[HeldRun]:
    """A child that stands at its gate, and may have children of its own."""
    with house.held(house.session("parent")) as run:
        yield run


def announced(client: httpx2.Client, session: str, **body: Any) -> dict[str, Any]:
    """An announced run that a session asked for with its own token."""
    answer = client.post("/v1/spawns", json=spawn_body(session, **{"agentId": "main", **body}))
    assert answer.status_code == 201, answer.text
    path = f"/v1/runs/{answer.json()['runId']}?wait=20s&until=announced"
    return dict(client.get(path).json())


def test_a_child_sends_to_its_own_children(house: House, parent: HeldRun) -> None:
    with house.with_token(parent.token) as client:
        below = announced(client, parent.child)
        answer = send(client, below["runId"])
        assert answer.status_code == 201, answer.text
        run = client.get(f"/v1/runs/{answer.json()['runId']}?wait=20s&until=announced").json()
        assert (run["continues"], run["requesterSessionKey"]) == (below["runId"], parent.child)
        assert stop(client, below["childSessionKey"]).status_code == 200


def test_a_continued_child_does_not_send_to_itself_by_an_earlier_run(house: House) -> None:
    requester = house.session("parent")
    with house.held(requester) as held:
        first = held.run_id
    house.server.run(first, "announced")
    second = str(send(house.http, first).json()["runId"])
    token = house.gates.wait(second)
    try:
        with house.with_token(token) as client:
            for run_id in (second, first):
                problem_of(send(client, run_id), 403, "not_permitted")
            problem_of(stop(client, held.child), 403, "not_permitted")
            session = client.get("/v1/sessions/current").json()
            assert [run["runId"] for run in session["ownRuns"]] == [second, first]
            below = announced(client, held.child)
            assert send(client, below["runId"]).status_code == 201
    finally:
        house.gates.open(second)
        house.server.run(second, "announced")
    with house.with_token(token) as client:
        problem_of(send(client, below["runId"]), 401, "unauthorized")


def test_a_token_sends_within_its_own_sessions_only(house: House) -> None:
    own, foreign = house.ended(house.session("reader")), house.ended(house.session("else"))
    with house.with_token(house.secrets["controller"]) as client:
        answer = send(client, own["runId"])
        assert answer.status_code == 201, answer.text
        problem_of(send(client, foreign["runId"]), 404, "not_found")
        problem_of(stop(client, foreign["childSessionKey"]), 404, "not_found")
        house.server.run(answer.json()["runId"], "announced")
        assert stop(client, own["childSessionKey"]).status_code == 200
        assert stop(client, own["requesterSessionKey"]).status_code == 200
    (event,) = [
        one
        for one in house.http.get(f"/v1/runs/{answer.json()['runId']}/events").json()["items"]
        if one["type"] == "MessageReceived"
    ]
    assert (event["payload"]["by"], event["actor"]["token"]) == ("controller", "controller")
