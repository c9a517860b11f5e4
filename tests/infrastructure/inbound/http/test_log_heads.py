"""`/v1/log`: where the log ends, and who may have it verified and hear of that."""

import re

import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server
START = "/v1/log/verifications"
STOP = f"{START}/current/stop"


def test_the_head_is_the_hash_of_the_last_event_then(house: House) -> None:
    house.ended(house.session())
    newest = house.http.get("/v1/events", params={"order": "desc", "limit": 2}).json()["items"]
    for event in newest:
        answer = house.http.get("/v1/log", params={"at": f"pos:{event['position']}"})
        head = answer.json()
        assert head["position"] == event["position"]
        assert int(answer.headers["Spawnlog-Position"]) == event["position"]
        assert (head["chainHash"], head["recordedAt"]) == (event["chainHash"], event["recordedAt"])
        assert head["logId"] == answer.headers["Spawnlog-Log"]
    assert re.fullmatch("[0-9a-f]{64}", head["chainHash"])
    before = house.http.get("/v1/log", params={"at": "pos:0"}).json()
    assert (before["position"], before["chainHash"], before["recordedAt"]) == (0, None, None)


def test_whoever_sees_the_whole_log_hears_of_it_and_an_administrator_begins_and_stops(
    house: House,
) -> None:
    with house.with_token(house.secrets["watcher"]) as watcher:
        assert watcher.get("/v1/log").status_code == 200
        for path in (START, STOP):
            problem = problem_of(watcher.post(path), 403, "not_permitted")
            assert problem["detail"] == 'this token lacks the scope "admin"'
    with house.with_token(house.secrets["everything"]) as everything:
        answer = everything.post(START)
        assert answer.status_code == 202
        begun = answer.json()["verification"]
        assert begun["origin"] == "server"
        assert everything.post(STOP).status_code == 200
        newest = everything.get("/v1/log").json()["verifications"][0]
        assert (newest["number"], newest["startedBy"]) == (begun["number"], begun["startedBy"])
