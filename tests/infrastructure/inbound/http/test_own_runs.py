"""The runs of a child itself, now and as they were."""

from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

SHOWN_MAX = 50


def goes_on(house: House, run_id: str) -> str:
    answer = house.http.post(f"/v1/runs/{run_id}/messages", json={"message": "and then?"})
    assert answer.status_code == 201, answer.text
    house.server.run(answer.json()["runId"], "announced")
    return str(answer.json()["runId"])


def session(house: House, key: str, at: int | None = None) -> dict[str, Any]:
    query = {"at": f"pos:{at}"} if at is not None else {}
    answer = house.http.get(f"/v1/sessions/{key}", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def own(house: House, key: str, at: int | None = None) -> list[dict[str, Any]]:
    return list(session(house, key, at)["ownRuns"])


def shown(run_id: str, continues: str | None, stage: str = "announced") -> dict[str, Any]:
    return {"runId": run_id, "stage": stage, "continues": continues}


def test_a_session_tells_its_runs_now_and_as_they_were(house: House) -> None:
    first = house.ended(house.session())
    key = first["childSessionKey"]
    one = house.head()
    second = goes_on(house, first["runId"])
    two = house.head()
    third = goes_on(house, second)
    told = [shown(third, second), shown(second, first["runId"]), shown(first["runId"], None)]
    assert own(house, key) == told
    assert own(house, key, two) == told[1:]
    assert own(house, key, one) == told[2:]
    assert session(house, key, two)["runId"] == second
    events = house.http.get(f"/v1/runs/{second}/events").json()["items"]
    at = {event["type"]: event["position"] for event in events}
    queued = [shown(second, first["runId"], "queued"), shown(first["runId"], None)]
    assert own(house, key, at["RunQueued"]) == queued
    assert own(house, key, at["RunStarted"])[0]["stage"] == "started"
    # What is half of an append was never so: the run is there from the position of its birth.
    assert own(house, key, at["MessageReceived"] - 1) == told[2:]


def test_a_run_of_the_past_does_not_know_what_came_after_it(house: House) -> None:
    first = house.ended(house.session())
    one = house.head()
    second = goes_on(house, first["runId"])
    path = f"/v1/runs/{second}"
    problem_of(house.http.get(path, params={"at": f"pos:{one}"}), 404, "not_found")
    then = house.http.get(f"/v1/runs/{first['runId']}", params={"at": f"pos:{one}"}).json()
    assert then["archiveAt"] is not None
    # It is put away after the run that goes on with it, whenever that will be.
    now = house.http.get(f"/v1/runs/{first['runId']}").json()
    assert (now["archiveAt"], now["stage"]) == (None, "announced")
    events = house.http.get(f"{path}/events").json()["items"]
    at = {event["type"]: event["position"] for event in events}
    stages = {"RunQueued": "queued", "RunStarted": "started", "RunEnded": "ended"}
    for event, stage in stages.items():
        run = house.http.get(path, params={"at": f"pos:{at[event]}"}).json()
        assert (run["stage"], run["continues"]) == (stage, first["runId"]), event


def test_of_many_runs_the_newest_are_told_also_of_those_that_were_then(house: House) -> None:
    first = house.ended(house.session())
    runs = [first["runId"]]
    heads = [house.head()]
    for _ in range(SHOWN_MAX + 1):
        runs.append(goes_on(house, runs[0]))
        heads.append(house.head())
    key = first["childSessionKey"]
    told = [run["runId"] for run in own(house, key)]
    assert told == list(reversed(runs))[:SHOWN_MAX]
    for index in (0, 1, SHOWN_MAX - 1, SHOWN_MAX):
        then = [run["runId"] for run in own(house, key, heads[index])]
        assert then == list(reversed(runs[: index + 1]))[:SHOWN_MAX], index


def test_a_session_that_was_never_spawned_has_no_runs_of_its_own(house: House) -> None:
    run = house.ended(house.session())
    assert own(house, run["requesterSessionKey"]) == []
