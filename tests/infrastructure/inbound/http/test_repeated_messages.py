"""A message that is sent twice is one message, and its refusal is told again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import a_key, replayed
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

CHILDREN_MAX = 5


def send(
    client: httpx2.Client, run_id: str, message: Any = "and then?", *, key: str
) -> httpx2.Response:
    headers = {"Idempotency-Key": key}
    return client.post(f"/v1/runs/{run_id}/messages", json={"message": message}, headers=headers)


@pytest.fixture
def first(house: House) -> dict[str, Any]:
    """The announced run of a child."""
    return house.ended(house.session("asks"), label="one")


def test_a_message_is_taken_once(house: House, first: dict[str, Any]) -> None:
    key = a_key()
    one = send(house.http, first["runId"], key=key)
    house.server.run(one.json()["runId"], "announced")
    two = send(house.http, first["runId"], key=key)
    assert (two.status_code, two.content, replayed(two)) == (201, one.content, True)
    assert two.headers["location"] == one.headers["location"]
    other = send(house.http, first["runId"], "something else", key=key)
    problem_of(other, 422, "idempotency_key_reused")
    # The path belongs to the request: to another run of the session it is another one.
    three = send(house.http, one.json()["runId"], key=key)
    assert (three.status_code, replayed(three)) == (201, False)
    own = house.http.get(f"/v1/sessions/{first['childSessionKey']}").json()["ownRuns"]
    assert [run["continues"] for run in own] == [one.json()["runId"], first["runId"], None]


def test_a_refusal_is_recorded_and_given_again(house: House) -> None:
    requester, key = house.session("crowded"), a_key()
    first = house.ended(requester)
    slow = [house.accepted(requester, agentId="slow")["runId"] for _ in range(CHILDREN_MAX)]
    answer = send(house.http, first["runId"], key=key)
    problem = problem_of(answer, 403, "spawn_forbidden")
    assert (problem["rule"], problem["current"], problem["limit"]) == (
        "active_children",
        CHILDREN_MAX,
        CHILDREN_MAX,
    )
    assert "retry-after" not in answer.headers
    refused = house.server.run(problem["runId"])
    assert (refused["stage"], refused["rule"]) == ("refused", "active_children")
    assert (refused["continues"], refused["task"]) == (first["runId"], "and then?")
    assert house.server.events(problem["runId"]) == ["MessageReceived", "SpawnRefused"]
    for run_id in slow:
        house.http.post(f"/v1/runs/{run_id}/stop")
        house.server.run(run_id, "ended")
    again = send(house.http, first["runId"], key=key)
    assert (again.status_code, again.content, replayed(again)) == (403, answer.content, True)
    assert again.headers["content-type"] == "application/problem+json"
    own = house.http.get(f"/v1/sessions/{first['childSessionKey']}").json()
    assert [run["runId"] for run in own["ownRuns"]] == [first["runId"]]
    # The refused one stands for its session too, which goes on from the run that was not refused.
    taken = send(house.http, problem["runId"], key=a_key())
    assert (taken.status_code, taken.json()["continues"]) == (201, first["runId"])
    house.server.run(taken.json()["runId"], "announced")


def test_many_repeats_at_once_are_one_message(house: House, first: dict[str, Any]) -> None:
    key = a_key()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: send(house.http, first["runId"], key=key), range(12)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    taken = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in taken}) == 1
    assert sum(not replayed(answer) for answer in taken) == 1
    for answer in answers:
        if answer.status_code == 409:
            problem_of(answer, 409, "idempotency_in_flight")
    own = house.http.get(f"/v1/sessions/{first['childSessionKey']}").json()["ownRuns"]
    assert len(own) == 2
    house.server.run(taken[0].json()["runId"], "announced")


def test_a_message_is_answered_again_while_its_run_goes_on(house: House) -> None:
    with house.held(house.session("asks")) as held:
        pass
    house.server.run(held.run_id, "announced")
    key = a_key()
    one = send(house.http, held.run_id, key=key)
    run_id = one.json()["runId"]
    house.gates.wait(run_id)
    two = send(house.http, held.run_id, key=key)
    assert (two.status_code, two.content, replayed(two)) == (201, one.content, True)
    other = send(house.http, held.run_id, "something else", key=key)
    problem_of(other, 422, "idempotency_key_reused")
    house.gates.open(run_id)
    house.server.run(run_id, "announced")
