"""Every answer says where in the log it is true; every read can be asked as of a position."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def position_of(answer: httpx2.Response) -> int:
    return int(answer.headers["spawnlog-position"])


@pytest.fixture(scope="module")
def life(house: House) -> dict[str, Any]:
    """A run that is over, and its events."""
    run = house.ended(house.session("life"), agentId="talker", label="life")
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    return {"run": run, "events": events}


def test_what_was_answered_is_read_at_once(house: House) -> None:
    session = house.session()
    for count in range(1, 6):
        answer = house.spawn(session, agentId="slow")
        run = answer.json()
        seen = house.http.get(f"/v1/runs/{run['runId']}")
        assert seen.status_code == 200
        assert position_of(seen) >= position_of(answer)
        assert len(house.runs(session)) == count
        assert house.http.get(f"/v1/sessions/{session}").json()["activeChildren"] == count
    for run in house.runs(session):
        house.http.post(f"/v1/runs/{run['runId']}/stop")


def test_a_run_is_read_as_of_each_of_its_events(house: House, life: dict[str, Any]) -> None:
    run_id = life["run"]["runId"]
    stages = []
    for version, event in enumerate(life["events"], start=1):
        at = f"pos:{event['position']}"
        answer = house.http.get(f"/v1/runs/{run_id}", params={"at": at})
        assert answer.json()["version"] == version
        assert position_of(answer) == event["position"]
        by_version = house.http.get(f"/v1/runs/{run_id}", params={"version": version})
        assert by_version.json() == answer.json()
        stages.append(answer.json()["stage"])
    assert stages[0] == "requested"
    assert stages[-1] == "announced"
    assert [stage for stage in ("queued", "started", "ended") if stage in stages] == [
        "queued",
        "started",
        "ended",
    ]
    before = f"pos:{life['events'][0]['position'] - 1}"
    answer = house.http.get(f"/v1/runs/{run_id}", params={"at": before})
    problem_of(answer, 404, "not_found")
    answer = house.http.get(f"/v1/runs/{run_id}", params={"version": len(stages) + 1})
    problem_of(answer, 404, "not_found")


def test_an_instant_means_the_last_whole_append_before_it(
    house: House, life: dict[str, Any]
) -> None:
    run_id = life["run"]["runId"]
    for event in life["events"]:
        answer = house.http.get(f"/v1/runs/{run_id}", params={"at": event["recordedAt"]})
        assert position_of(answer) >= event["appendLast"]
        instant = datetime.fromisoformat(event["recordedAt"])
        just_before = (instant - timedelta(microseconds=1)).isoformat()
        answer = house.http.get("/v1/runs", params={"at": just_before})
        assert position_of(answer) < event["position"]


def test_offsets_and_fractions_of_an_instant_are_understood(
    house: House, life: dict[str, Any]
) -> None:
    run_id = life["run"]["runId"]
    instant = datetime.fromisoformat(life["events"][-1]["recordedAt"])
    expected = None
    for text in (
        instant.isoformat(),
        instant.isoformat().replace("+00:00", "Z"),
        instant.isoformat().replace("+00:00", "z").replace("T", "t"),
        (instant + timedelta(hours=2)).replace(tzinfo=None).isoformat() + "+02:00",
        (instant - timedelta(hours=7)).replace(tzinfo=None).isoformat() + "-07:00",
        instant.isoformat().replace("+00:00", "000Z"),
    ):
        answer = house.http.get(f"/v1/runs/{run_id}", params={"at": text})
        assert answer.status_code == 200, text
        expected = expected or answer.json()
        assert answer.json() == expected


def test_the_near_future_is_now_and_the_far_future_is_refused(house: House) -> None:
    session = house.session()
    house.accepted(session)
    soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    items = house.http.get("/v1/runs", params={"requester": session, "at": soon}).json()["items"]
    assert len(items) == 1
    late = (datetime.now(UTC) + timedelta(seconds=9)).isoformat()
    problem_of(house.http.get("/v1/runs", params={"at": late}), 422, "invalid_request")
    answer = house.http.get("/v1/runs", params={"at": f"pos:{house.head() + 1000}"})
    problem = problem_of(answer, 422, "invalid_request")
    assert "pos:" in problem["detail"]


def test_a_session_is_read_as_of_a_position(house: House) -> None:
    session = house.session()
    first = position_of(house.spawn(session, agentId="slow"))
    second = position_of(house.spawn(session, agentId="slow"))
    path = f"/v1/sessions/{session}"
    assert house.http.get(path, params={"at": f"pos:{first}"}).json()["activeChildren"] == 1
    then = house.http.get(path, params={"at": f"pos:{second}"})
    assert then.json()["activeChildren"] == 2
    for run in house.runs(session):
        house.http.post(f"/v1/runs/{run['runId']}/stop")
        house.server.run(run["runId"], "ended")
    assert house.http.get(path).json()["activeChildren"] == 0
    assert house.http.get(path, params={"at": f"pos:{second}"}).json() == then.json()


def test_an_unchanged_run_is_not_sent_again(house: House) -> None:
    run = house.accepted(house.session(), agentId="slow")
    path = f"/v1/runs/{run['runId']}"
    house.server.run(run["runId"], "started")
    first = house.http.get(path)
    etag = first.headers["etag"]
    for given in (etag, f'"0", {etag}', f"W/{etag}", "*"):
        answer = house.http.get(path, headers={"If-None-Match": given})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
        assert position_of(answer) >= position_of(first)
    assert house.http.get(path, headers={"If-None-Match": '"0"'}).status_code == 200
    house.http.post(f"{path}/stop")
    house.server.run(run["runId"], "ended")
    answer = house.http.get(path, headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert answer.headers["etag"] != etag


def test_a_wait_ends_when_the_stage_is_reached(house: House) -> None:
    with house.held(house.session()) as run:
        path = f"/v1/runs/{run.run_id}"
        answer = house.http.get(path, params={"wait": "20s", "until": "started"})
        assert answer.json()["stage"] == "started"
        began = time.monotonic()
        answer = house.http.get(path, params={"wait": "300ms", "until": "ended"})
        assert 0.25 < time.monotonic() - began < 5
        assert answer.json()["stage"] == "started"
        house.gates.open(run.run_id)
        answer = house.http.get(path, params={"wait": "0.5m"})
        assert answer.json()["stage"] in ("ended", "announced")
        answer = house.http.get(path, params={"wait": "20s", "until": "announced"})
        assert answer.json()["stage"] == "announced"
        assert answer.json()["resultText"] == "over"


def test_a_wait_for_what_was_reached_long_ago_ends_at_once(
    house: House, life: dict[str, Any]
) -> None:
    began = time.monotonic()
    for until in ("started", "ended", "announced"):
        house.server.run(life["run"]["runId"], until)
    assert time.monotonic() - began < 3


def test_a_refusal_ends_every_wait(house: House) -> None:
    session = "agent:narrow:waits"
    refused = problem_of(house.spawn(session, agentId="main"), 403, "spawn_forbidden")
    for until in ("started", "ended", "announced", "archived"):
        run = house.server.run(refused["runId"], until)
        assert (run["stage"], run["status"]) == ("refused", "refused")
        assert run["error"] == refused["detail"]


def test_a_run_that_is_deleted_at_its_end_is_archived(house: House) -> None:
    run = house.accepted(house.session(), cleanup="delete")
    archived = house.server.run(run["runId"], "archived")
    assert archived["stage"] == "archived"
    assert archived["archivedAt"]


def test_read_of_a_position_that_does_not_come_is_unavailable(
    house: House, life: dict[str, Any]
) -> None:
    path = f"/v1/runs/{life['run']['runId']}"
    ahead = house.http.get(path, params={"minPosition": 10**12})
    problem_of(ahead, 503, "unavailable")
    assert int(ahead.headers["retry-after"]) >= 1
