"""Positions, times ago and moments of runs: as of when a read is, and how long it waits."""

import time
import uuid
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
    events = house.events(run["runId"])
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
        assert house.get(f"/v1/sessions/{session}")["activeChildren"] == count
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
    items = house.get("/v1/runs", requester=session, at=soon)["items"]
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
    assert house.get(path, at=f"pos:{first}")["activeChildren"] == 1
    then = house.http.get(path, params={"at": f"pos:{second}"})
    assert then.json()["activeChildren"] == 2
    for run in house.runs(session):
        house.http.post(f"/v1/runs/{run['runId']}/stop")
        house.server.run(run["runId"], "ended")
    assert house.get(path)["activeChildren"] == 0
    assert house.get(path, at=f"pos:{second}") == then.json()


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


STAGES = {
    "requested": "SpawnRequested",
    "scripts-resolved": "ScriptsResolved",
    "session-created": "SessionCreated",
    "queued": "RunQueued",
    "started": "RunStarted",
    "ended": "RunEnded",
    "announced": "RunAnnounced",
}


@pytest.fixture(scope="module")
def announced(house: House) -> dict[str, Any]:
    """A run that is announced, with a label that nobody else has."""
    label = f"reviewer@home {uuid.uuid4().hex}"
    run = house.ended(house.session("reader"), label=label)
    events = house.events(run["runId"])
    return {**run, "positions": {one["type"]: one["position"] for one in events}}


def get(house: House, path: str, at: str, **query: Any) -> httpx2.Response:
    return house.http.get(path, params={"at": at, **query})


def test_a_moment_of_a_run_is_where_it_came_to_a_stage(
    house: House, announced: dict[str, Any]
) -> None:
    run_id = announced["runId"]
    for stage, event in STAGES.items():
        for name in (run_id, run_id.upper(), run_id[:8], run_id[:13], announced["label"]):
            answer = get(house, f"/v1/runs/{run_id}", f"run:{name}@{stage}")
            assert answer.status_code == 200, answer.text
            assert position_of(answer) == announced["positions"][event]
            assert answer.json()["stage"] == stage


def test_what_a_run_had_not_come_to_is_not_there(house: House, announced: dict[str, Any]) -> None:
    run_id = announced["runId"]
    queued = f"run:{run_id}@queued"
    for part in ("prompt", "shared-context"):
        problem_of(get(house, f"/v1/runs/{run_id}/{part}", queued), 409, "not_started")
    assert get(house, f"/v1/runs/{run_id}/transcript", queued).json()["items"] == []
    types = [one["type"] for one in get(house, f"/v1/runs/{run_id}/events", queued).json()["items"]]
    assert types[-1] == "RunQueued"
    inbox = f"/v1/sessions/{announced['requesterSessionKey']}/announcements"
    assert get(house, inbox, f"run:{run_id}@ended").json()["items"] == []
    (told,) = get(house, inbox, f"run:{run_id}@announced").json()["items"]
    assert (told["runId"], told["state"]) == (run_id, "delivered")
    ack = house.http.post(f"{inbox}/{run_id}/ack")
    assert ack.status_code == 200
    assert house.get(inbox)["items"][0]["state"] == "acknowledged"
    assert get(house, inbox, f"run:{run_id}@announced").json()["items"] == [told]


def test_a_moment_that_has_not_come_is_not_found(house: House) -> None:
    with house.held(house.session()) as run:
        answer = get(house, "/v1/runs", f"run:{run.run_id}@ended")
        problem = problem_of(answer, 404, "not_found")
        assert problem["detail"] == f"run {run.run_id} has not come to ended: it is started"
        assert problem["runId"] == run.run_id
        problem_of(get(house, "/v1/runs", f"run:{run.run_id}@refused"), 404, "not_found")


def test_a_name_that_means_no_run_or_several_is_refused(house: House) -> None:
    label, session = f"twin-{uuid.uuid4().hex}", house.session()
    ids = [house.ended(house.session(), label=label)["runId"] for _ in range(2)]
    problem = problem_of(get(house, "/v1/lanes", f"run:{label}@started"), 422, "invalid_request")
    assert all(run_id in problem["detail"] for run_id in ids)
    newest = get(house, f"/v1/runs/{ids[1]}", f"run:{label}@last@started")
    assert newest.json()["stage"] == "started"
    for name in (str(uuid.uuid4()), "0" * 12, "nobody", session):
        problem_of(get(house, "/v1/lanes", f"run:{name}@started"), 404, "not_found")
    for at in ("run:", "run:@started", f"run:{label}", f"run:{label}@", f"run:{label}@unborn"):
        problem = problem_of(get(house, "/v1/lanes", at), 422, "invalid_request")
        assert problem["errors"][0]["pointer"] == "/query/at"
    problem_of(get(house, "/v1/lanes", f"run:{'x' * 300}@started"), 422, "invalid_request")


def test_a_label_means_the_run_that_came_about_and_its_refusal_the_one_that_did_not(
    house: House,
) -> None:
    label, session = f"again-{uuid.uuid4().hex}", house.session()
    refused = house.spawn(session, label=label, agentId="nobody-configured").json()["runId"]
    run = house.ended(session, label=label)
    for stage, run_id in (("started", run["runId"]), ("refused", refused)):
        answer = get(house, f"/v1/runs/{run_id}", f"run:{label}@{stage}")
        assert answer.json()["stage"] == stage


def test_a_caller_names_the_runs_that_it_may_see_alone(
    house: House, announced: dict[str, Any]
) -> None:
    stranger = house.ended(house.session("stranger"), label=f"hidden-{uuid.uuid4().hex}")
    with house.with_token(house.secrets["reader"]) as client:
        for name in (announced["runId"], announced["runId"][:8], announced["label"]):
            answer = client.get("/v1/runs", params={"at": f"run:{name}@started"})
            assert answer.status_code == 200, answer.text
        for name in (stranger["runId"], stranger["runId"][:8], stranger["label"]):
            answer = client.get("/v1/runs", params={"at": f"run:{name}@started"})
            problem = problem_of(answer, 404, "not_found")
            assert stranger["runId"] not in answer.text
            assert problem["detail"].startswith("a moment names a run that is not on record")


def test_a_time_ago_is_the_instant_before_it(house: House) -> None:
    house.accepted(house.session())
    for unit, seconds in (("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)):
        count = 40 if unit == "s" else 1
        before = datetime.now(UTC) - timedelta(seconds=count * seconds)
        answer = get(house, "/v1/runs", f"-{count}{unit}", limit=500)
        after = datetime.now(UTC) - timedelta(seconds=count * seconds)
        first, last = (
            position_of(get(house, "/v1/runs", one.isoformat(), limit=1)) for one in (before, after)
        )
        assert first <= position_of(answer) <= last
    assert position_of(get(house, "/v1/runs", "-0s", limit=1)) == house.head()
    assert get(house, "/v1/runs", "-36500d").json()["items"] == []


def test_one_does_not_wait_for_the_past(house: House) -> None:
    answer = get(house, f"/v1/sessions/{house.session()}/announcements", "pos:1", wait="1s")
    problem_of(answer, 422, "invalid_request")


def test_the_ledger_is_over_all_sessions_that_a_token_covers(
    house: House, announced: dict[str, Any]
) -> None:
    strangers = house.ended(house.session("stranger"))["runId"]
    after = announced["positions"]["RunAnnounced"] - 1

    def listed(client: httpx2.Client, **query: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        behind = after
        while behind is not None:
            body = client.get("/v1/announcements", params={"after": behind, **query}).json()
            found |= {one["runId"]: one for one in body["items"]}
            behind = body["nextAfter"]
        return found

    everything = listed(house.http, limit=3)
    assert {announced["runId"], strangers} <= set(everything)
    positions = [one["position"] for one in everything.values()]
    assert positions == sorted(positions)
    with house.with_token(house.secrets["reader"]) as client:
        own = listed(client, limit=1)
        assert announced["runId"] in own
        assert strangers not in own
    delivered = listed(house.http, state="delivered")
    assert strangers in delivered
    assert {one["state"] for one in delivered.values()} == {"delivered"}
    house.http.post(
        f"/v1/sessions/{everything[strangers]['requester']}/announcements/{strangers}/ack"
    )
    assert strangers in listed(house.http, state="acknowledged")
    assert strangers not in listed(house.http, state="delivered")
    problem_of(house.http.get("/v1/announcements?state=lost"), 422, "invalid_request")
