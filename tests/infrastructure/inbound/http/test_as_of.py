"""As of when a read is: times ago and moments of runs, wherever a state is read."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import problem_of
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


def position_of(answer: httpx2.Response) -> int:
    return int(answer.headers["Spawnlog-Position"])


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
def life(house: House) -> dict[str, Any]:
    """A run that is announced, with a label that nobody else has."""
    label = f"reviewer@home {uuid.uuid4().hex}"
    run = house.ended(house.session("reader"), label=label)
    events = house.http.get(f"/v1/runs/{run['runId']}/events").json()["items"]
    return {**run, "positions": {one["type"]: one["position"] for one in events}}


def get(house: House, path: str, at: str, **query: Any) -> httpx2.Response:
    return house.http.get(path, params={"at": at, **query})


def test_a_moment_of_a_run_is_where_it_came_to_a_stage(house: House, life: dict[str, Any]) -> None:
    run_id = life["runId"]
    for stage, event in STAGES.items():
        for name in (run_id, run_id.upper(), run_id[:8], run_id[:13], life["label"]):
            answer = get(house, f"/v1/runs/{run_id}", f"run:{name}@{stage}")
            assert answer.status_code == 200, answer.text
            assert position_of(answer) == life["positions"][event]
            assert answer.json()["stage"] == stage


def test_what_a_run_had_not_come_to_is_not_there(house: House, life: dict[str, Any]) -> None:
    run_id = life["runId"]
    queued = f"run:{run_id}@queued"
    for part in ("prompt", "shared-context"):
        problem_of(get(house, f"/v1/runs/{run_id}/{part}", queued), 409, "not_started")
    assert get(house, f"/v1/runs/{run_id}/transcript", queued).json()["items"] == []
    types = [one["type"] for one in get(house, f"/v1/runs/{run_id}/events", queued).json()["items"]]
    assert types[-1] == "RunQueued"
    inbox = f"/v1/sessions/{life['requesterSessionKey']}/announcements"
    assert get(house, inbox, f"run:{run_id}@ended").json()["items"] == []
    (told,) = get(house, inbox, f"run:{run_id}@announced").json()["items"]
    assert (told["runId"], told["state"]) == (run_id, "delivered")
    ack = house.http.post(f"{inbox}/{run_id}/ack")
    assert ack.status_code == 200
    assert house.http.get(inbox).json()["items"][0]["state"] == "acknowledged"
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


def test_a_caller_names_the_runs_that_it_may_see_alone(house: House, life: dict[str, Any]) -> None:
    stranger = house.ended(house.session("stranger"), label=f"hidden-{uuid.uuid4().hex}")
    with house.with_token(house.secrets["reader"]) as client:
        for name in (life["runId"], life["runId"][:8], life["label"]):
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
    house: House, life: dict[str, Any]
) -> None:
    strangers = house.ended(house.session("stranger"))["runId"]
    after = life["positions"]["RunAnnounced"] - 1

    def listed(client: httpx2.Client, **query: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        behind = after
        while behind is not None:
            body = client.get("/v1/announcements", params={"after": behind, **query}).json()
            found |= {one["runId"]: one for one in body["items"]}
            behind = body["nextAfter"]
        return found

    everything = listed(house.http, limit=3)
    assert {life["runId"], strangers} <= set(everything)
    positions = [one["position"] for one in everything.values()]
    assert positions == sorted(positions)
    with house.with_token(house.secrets["reader"]) as client:
        own = listed(client, limit=1)
        assert life["runId"] in own
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
