"""Positions, times ago and stages of runs as moments of reads, and waits."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

STAGES = {
    "requested": "SpawnRequested",
    "scripts-resolved": "ScriptsResolved",
    "session-created": "SessionCreated",
    "queued": "RunQueued",
    "started": "RunStarted",
    "ended": "RunEnded",
    "announced": "RunAnnounced",
}


def position_of(answer: httpx2.Response) -> int:
    assert answer.status_code == 200, answer.text
    return int(answer.headers["spawnlog-position"])


def get(server: Server, path: str, at: str, **query: Any) -> httpx2.Response:
    return server.http.get(path, params={"at": at, **query})


@pytest.fixture(scope="module")
def announced(server: Server) -> dict[str, Any]:
    """Return an announced run with a unique label, and its events."""
    label = f"reviewer@home {uuid.uuid4().hex}"
    run = server.announced(session=server.new_session("reader"), label=label, agentId="talker")
    events = server.recorded(run["runId"])
    return {**run, "events": events, "at": {event["type"]: event["position"] for event in events}}


def test_run_is_read_as_of_each_event(server: Server, announced: dict[str, Any]) -> None:
    path = f"/v1/runs/{announced['runId']}"
    stages = []
    for version, event in enumerate(announced["events"], start=1):
        answer = get(server, path, f"pos:{event['position']}")
        assert answer.json()["version"] == version
        assert position_of(answer) == event["position"]
        assert server.get(path, version=version) == answer.json()
        stages.append(answer.json()["stage"])
    assert list(dict.fromkeys(stages)) == [stage for stage in STAGES if stage in stages]
    assert {"requested", "queued", "started", "ended", "announced"} <= set(stages)
    before = get(server, path, f"pos:{announced['events'][0]['position'] - 1}")
    problem_of(before, 404, "not_found")
    after = server.http.get(path, params={"version": len(stages) + 1})
    problem_of(after, 404, "not_found")


def test_instant_is_last_whole_append_before_it(server: Server, announced: dict[str, Any]) -> None:
    path = f"/v1/runs/{announced['runId']}"
    for event in announced["events"]:
        assert position_of(get(server, path, event["recordedAt"])) >= event["appendLast"]
        instant = datetime.fromisoformat(event["recordedAt"])
        just_before = (instant - timedelta(microseconds=1)).isoformat()
        assert position_of(get(server, "/v1/runs", just_before)) < event["position"]
    utc = instant.isoformat()
    spellings = [
        utc,
        utc.replace("+00:00", "Z"),
        utc.replace("+00:00", "z").replace("T", "t"),
        utc.replace("+00:00", "000Z"),
        (instant + timedelta(hours=2)).replace(tzinfo=None).isoformat() + "+02:00",
        (instant - timedelta(hours=7)).replace(tzinfo=None).isoformat() + "-07:00",
    ]
    answers = [get(server, path, spelling).json() for spelling in spellings]
    assert answers == [answers[0]] * len(spellings)
    assert answers[0]["runId"] == announced["runId"]


def test_near_future_is_now_and_later_refused(server: Server) -> None:
    session = server.new_session()
    server.spawned(session=session)
    soon, late = ((datetime.now(UTC) + timedelta(seconds=n)).isoformat() for n in (3, 9))
    assert len(server.get("/v1/runs", requester=session, at=soon)["items"]) == 1
    for at in (late, f"pos:{server.head() + 1000}"):
        problem_of(get(server, "/v1/runs", at), 422, "invalid_request")


def test_unchanged_run_is_not_sent_again(server: Server) -> None:
    run = server.spawned(session=server.new_session(), agentId="slow")
    path = f"/v1/runs/{run['runId']}"
    server.run(run["runId"], "started")
    first = server.http.get(path)
    etag = first.headers["etag"]
    for match in (etag, f'"0", {etag}', f"W/{etag}", "*"):
        answer = server.http.get(path, headers={"If-None-Match": match})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == etag
        assert int(answer.headers["spawnlog-position"]) >= position_of(first)
    assert server.http.get(path, headers={"If-None-Match": '"0"'}).status_code == 200
    server.http.post(f"{path}/stop")
    server.run(run["runId"], "ended")
    answer = server.http.get(path, headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert answer.headers["etag"] != etag


def test_wait_ends_when_stage_is_reached(server: Server, announced: dict[str, Any]) -> None:
    with server.held(server.new_session()) as run:
        path = f"/v1/runs/{run.run_id}"
        assert server.get(path, wait="20s", until="started")["stage"] == "started"
        began = time.monotonic()
        assert server.get(path, wait="300ms", until="ended")["stage"] == "started"
        assert 0.25 < time.monotonic() - began < 5
        server.let_go(run.run_id)
        assert server.get(path, wait="0.5m")["stage"] in ("ended", "announced")
        found = server.get(path, wait="20s", until="announced")
        assert (found["stage"], found["resultText"]) == ("announced", "over")
    began = time.monotonic()
    for until in ("started", "ended", "announced"):
        server.run(announced["runId"], until)
    assert time.monotonic() - began < 3


def test_refusal_ends_every_wait(server: Server) -> None:
    answer = server.spawn(session="agent:narrow:waits", agentId="main")
    refused = problem_of(answer, 403, "spawn_forbidden")
    for until in ("started", "ended", "announced", "archived"):
        run = server.run(refused["runId"], until)
        assert (run["stage"], run["status"]) == ("refused", "refused")
        assert run["error"] == refused["detail"]


def test_position_that_does_not_come_is_unavailable(
    server: Server, announced: dict[str, Any]
) -> None:
    path = f"/v1/runs/{announced['runId']}"
    ahead = server.http.get(path, params={"minPosition": 10**12})
    problem_of(ahead, 503, "unavailable")
    assert int(ahead.headers["retry-after"]) >= 1
    inbox = f"/v1/sessions/{announced['requesterSessionKey']}/announcements"
    problem_of(get(server, inbox, "pos:1", wait="1s"), 422, "invalid_request")


def test_moment_of_run_is_where_stage_was_reached(
    server: Server, announced: dict[str, Any]
) -> None:
    run_id = announced["runId"]
    for stage, event in STAGES.items():
        for name in (run_id, run_id.upper(), run_id[:8], run_id[:13], announced["label"]):
            answer = get(server, f"/v1/runs/{run_id}", f"run:{name}@{stage}")
            assert position_of(answer) == announced["at"][event]
            assert answer.json()["stage"] == stage


def test_later_parts_of_run_are_not_there_then(server: Server, announced: dict[str, Any]) -> None:
    path, queued = f"/v1/runs/{announced['runId']}", f"run:{announced['runId']}@queued"
    for part in ("prompt", "shared-context"):
        problem_of(get(server, f"{path}/{part}", queued), 409, "not_started")
    assert get(server, f"{path}/transcript", queued).json()["items"] == []
    events = get(server, f"{path}/events", queued).json()["items"]
    assert events[-1]["type"] == "RunQueued"
    inbox = f"/v1/sessions/{announced['requesterSessionKey']}/announcements"
    then = f"run:{announced['runId']}@announced"
    assert get(server, inbox, f"run:{announced['runId']}@ended").json()["items"] == []
    (item,) = get(server, inbox, then).json()["items"]
    assert (item["runId"], item["state"]) == (announced["runId"], "delivered")
    assert server.http.post(f"{inbox}/{announced['runId']}/ack").status_code == 200
    assert server.get(inbox)["items"][0]["state"] == "acknowledged"
    assert get(server, inbox, then).json()["items"] == [item]


def test_stage_that_was_not_reached_is_not_found(server: Server) -> None:
    with server.held(server.new_session()) as run:
        problem = problem_of(get(server, "/v1/runs", f"run:{run.run_id}@ended"), 404, "not_found")
        assert problem["detail"] == f"run {run.run_id} has not reached ended; it is started"
        assert problem["runId"] == run.run_id
        problem_of(get(server, "/v1/runs", f"run:{run.run_id}@refused"), 404, "not_found")


def test_moment_needs_name_of_one_run(server: Server) -> None:
    label, session = f"twin-{uuid.uuid4().hex}", server.new_session()
    ids = [server.announced(session=server.new_session(), label=label)["runId"] for _ in range(2)]
    problem = problem_of(get(server, "/v1/lanes", f"run:{label}@started"), 422, "invalid_request")
    assert all(run_id in problem["detail"] for run_id in ids)
    newest = get(server, f"/v1/runs/{ids[1]}", f"run:{label}@last@started")
    assert newest.json()["stage"] == "started"
    for name in (str(uuid.uuid4()), "0" * 12, "nobody", session):
        problem_of(get(server, "/v1/lanes", f"run:{name}@started"), 404, "not_found")
    malformed = ("run:", "run:@started", f"run:{label}", f"run:{label}@", f"run:{label}@unborn")
    for at in (*malformed, f"run:{'x' * 300}@started"):
        problem = problem_of(get(server, "/v1/lanes", at), 422, "invalid_request")
        assert pointers_of(problem) == ["/query/at"]


def test_label_of_refused_spawn_is_named_by_its_stage(server: Server) -> None:
    label, session = f"again-{uuid.uuid4().hex}", server.new_session()
    refused = server.spawn(session=session, label=label, agentId="nobody-configured").json()[
        "runId"
    ]
    run = server.announced(session=session, label=label)
    for stage, run_id in (("started", run["runId"]), ("refused", refused)):
        answer = get(server, f"/v1/runs/{run_id}", f"run:{label}@{stage}")
        assert answer.json()["stage"] == stage


def test_moment_names_visible_runs_alone(server: Server, announced: dict[str, Any]) -> None:
    stranger = server.announced(
        session=server.new_session("stranger"), label=f"hidden-{uuid.uuid4().hex}"
    )
    with server.with_token(server.secrets["reader"]) as client:
        for run, status in ((announced, 200), (stranger, 404)):
            for name in (run["runId"], run["runId"][:8], run["label"]):
                answer = client.get("/v1/runs", params={"at": f"run:{name}@started"})
                assert answer.status_code == status, answer.text
                assert stranger["runId"] not in answer.text


def test_time_ago_is_the_instant_before(server: Server) -> None:
    server.spawned(session=server.new_session())
    for unit, seconds in (("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)):
        count = 40 if unit == "s" else 1
        ago = timedelta(seconds=count * seconds)
        before = datetime.now(UTC) - ago
        found = position_of(get(server, "/v1/runs", f"-{count}{unit}", limit=500))
        after = datetime.now(UTC) - ago
        first, last = (
            position_of(get(server, "/v1/runs", item.isoformat(), limit=1))
            for item in (before, after)
        )
        assert first <= found <= last
    assert position_of(get(server, "/v1/runs", "-0s", limit=1)) == server.head()
    assert get(server, "/v1/runs", "-36500d").json()["items"] == []


def test_ledger_covers_sessions_of_token(server: Server, announced: dict[str, Any]) -> None:
    stranger = server.announced(session=server.new_session("stranger"))

    def listed(client: httpx2.Client, **query: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        after = announced["at"]["RunAnnounced"] - 1
        while after is not None:
            page = client.get("/v1/announcements", params={"after": after, **query}).json()
            found |= {item["runId"]: item for item in page["items"]}
            after = page["nextAfter"]
        return found

    everything = listed(server.http)
    assert {announced["runId"], stranger["runId"]} <= set(everything)
    with server.with_token(server.secrets["reader"]) as client:
        own = listed(client, limit=1)
        assert announced["runId"] in own
        assert stranger["runId"] not in own
    assert stranger["runId"] in listed(server.http, state="delivered")
    inbox = f"/v1/sessions/{stranger['requesterSessionKey']}/announcements"
    server.http.post(f"{inbox}/{stranger['runId']}/ack")
    assert stranger["runId"] in listed(server.http, state="acknowledged")
    assert stranger["runId"] not in listed(server.http, state="delivered")
