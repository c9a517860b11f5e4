"""A message that is sent twice is one message, and its refusal is told again."""

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
