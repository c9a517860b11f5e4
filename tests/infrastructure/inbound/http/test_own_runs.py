"""The runs of a child itself, now and as they were."""

from typing import Any

import pytest

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
