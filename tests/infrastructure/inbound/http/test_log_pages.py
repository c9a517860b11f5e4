"""Pages of the log, its head, and the texts of a run."""

import hashlib
import re
from typing import Any

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.requests import pages_of_events, spawn_body
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

ENVELOPE = """position stream version type typeVersion recordedAt occurredAt eventId commandId
    actor causation correlation runId traceparent configRevision writerVersion appendLast chainHash
    payload"""
Run = dict[str, Any]


def all_events(server: Server, **query: Any) -> list[dict[str, Any]]:
    """Return every event of a question, through all pages."""
    items: list[dict[str, Any]] = []
    for answer in pages_of_events(server.http, **query):
        page = answer.json()
        assert page["head"] == int(answer.headers["spawnlog-position"])
        items += page["items"]
    return items


def newest_events(server: Server, **query: Any) -> list[dict[str, Any]]:
    """Return every event of a question from the newest on, through all pages."""
    items: list[dict[str, Any]] = []
    place: dict[str, Any] = {"order": "desc"}
    while True:
        page = server.get("/v1/events", **query, **place)
        items += page["items"]
        if page["nextBefore"] is None:
            return items
        place = {"before": page["nextBefore"]}


@pytest.fixture(scope="module")
def run(server: Server) -> Run:
    return server.announced(session=server.new_session("pages"))


def test_positions_have_no_gaps(server: Server, run: Run) -> None:
    positions = [item["position"] for item in all_events(server, limit=500)]
    assert positions == list(range(1, len(positions) + 1))


def test_newest_events_come_first_if_wanted(server: Server, run: Run) -> None:
    at = f"pos:{server.head()}"
    questions: list[dict[str, Any]] = [
        {},
        {"runId": run["runId"]},
        {"tree": run["requesterSessionKey"]},
        {"types": "RunEnded,RunStarted"},
        {"actor": "system", "runId": run["runId"]},
    ]
    for question in questions:
        found = newest_events(server, at=at, limit=7 if question else 500, **question)
        assert found
        assert found == all_events(server, at=at, limit=500, **question)[::-1]
    page = server.get("/v1/events", before=5, limit=2)
    assert [item["position"] for item in page["items"]] == [4, 3]
    assert (page["nextAfter"], page["nextBefore"]) == (4, 3)
    rest = server.get("/v1/events", before=5, after=2)
    assert [item["position"] for item in rest["items"]] == [4, 3]
    assert rest["nextBefore"] is None
    assert server.get("/v1/events", before=1)["items"] == []
    assert server.get("/v1/events", limit=2)["nextBefore"] is None


def test_page_after_the_newest_follows_it(server: Server) -> None:
    page = server.get("/v1/events", order="desc", limit=1)
    assert page["items"][0]["position"] == page["nextAfter"] == page["head"]
    server.announced(session=server.new_session())
    later = server.get("/v1/events", after=page["nextAfter"], limit=1)
    assert later["items"][0]["position"] == page["nextAfter"] + 1
    beyond = server.get("/v1/events", after=server.head() + 1_000_000)
    assert beyond["items"] == []


def test_log_reads_as_of_a_position(server: Server, run: Run) -> None:
    own = all_events(server, runId=run["runId"])
    at = f"pos:{own[4]['position']}"
    page = server.get("/v1/events", at=at, runId=run["runId"])
    assert page["items"] == own[:5]
    assert page["nextAfter"] == page["head"] == own[4]["position"]
    assert server.get("/v1/events", at=at, order="desc")["items"][0] == own[4]
    query = {"at": f"pos:{own[0]['position'] - 1}", "runId": run["runId"]}
    problem_of(server.http.get("/v1/events", params=query), 404, "not_found")


def test_events_are_narrowed_by_each_filter(server: Server, run: Run) -> None:
    run_id, session = run["runId"], run["requesterSessionKey"]
    own = all_events(server, runId=run_id)
    assert {item["runId"] for item in own} == {run_id}
    of_types = all_events(server, runId=run_id, types="RunStarted,RunEnded")
    assert [item["type"] for item in of_types] == ["RunStarted", "RunEnded"]
    assert all_events(server, runId=run_id, types=" RunStarted , ") == of_types[:1]
    assert all_events(server, runId=run_id, types=["RunEnded", "RunStarted"]) == of_types
    of_tree = all_events(server, tree=session, limit=3)
    assert {item["correlation"] for item in of_tree} == {session}
    assert {item["position"] for item in own} <= {item["position"] for item in of_tree}
    assert all_events(server, tree=session.upper()) == of_tree
    assert all_events(server, tree=server.new_session()) == []
    for word in ("token", "admin", "system"):
        found = all_events(server, runId=run_id, actor=word)
        assert found
        assert found == [item for item in own if word in item["actor"].values()]
    head = server.head()
    page = server.get("/v1/events", actor="nobody", limit=500)
    assert page["items"] == []
    assert page["nextAfter"] >= head


@pytest.mark.parametrize(
    "query", [{"before": 5}, {"order": "desc"}, {"at": "pos:1"}, {"limit": 50}], ids=str
)
def test_stream_takes_no_parameter_of_page(server: Server, query: dict[str, Any]) -> None:
    answer = server.http.get("/v1/events", params=query, headers={"Accept": "text/event-stream"})
    problem = problem_of(answer, 422, "invalid_request")
    assert "a stream runs forward" in problem["detail"]


def test_event_has_its_whole_envelope(server: Server, run: Run) -> None:
    items = server.get(f"/v1/runs/{run['runId']}/events")["items"]
    for version, item in enumerate(items, start=1):
        assert set(item) == set(ENVELOPE.split())
        assert set(item["actor"]) == {"kind", "token", "session"}
        assert (item["version"], item["stream"]) == (version, f"run:{run['runId']}")
        assert len(item["chainHash"]) == 64
        assert item["appendLast"] >= item["position"]
    assert len(items) == run["version"]
    assert items[0]["actor"] == {"kind": "token", "token": "admin", "session": None}


def test_unknown_run_has_no_events(server: Server) -> None:
    for run_id in ("12345678-1234-4234-8234-123456781234", "x"):
        answer = server.http.get("/v1/events", params={"runId": run_id})
        problem_of(answer, 404, "not_found")


def test_trace_of_request_is_kept_if_valid(server: Server) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for sent, kept in ((trace, trace), ("00-xyz", None), (trace.upper(), trace)):
        body, headers = spawn_body(server.new_session()), {"traceparent": sent}
        answer = server.http.post("/v1/spawns", json=body, headers=headers)
        (event,) = server.recorded(answer.json()["runId"], "SpawnRequested")
        assert event["traceparent"] == kept


def test_transcript_has_tools_if_wanted(server: Server) -> None:
    run = server.announced(session=server.new_session(), agentId="talker")
    path = f"/v1/runs/{run['runId']}/transcript"
    spoken = server.get(path)["items"]
    every = server.get(path, tools="true")["items"]
    assert {"tool", "usage"} <= {item["kind"] for item in every}
    assert not {"tool", "usage"} & {item["kind"] for item in spoken}
    assert [item for item in every if item in spoken] == spoken


def test_prompt_is_shown_part_by_part(server: Server) -> None:
    run = server.announced(session=server.new_session(), task="täsk", contextPreamble="préamble")
    prompt = server.get(f"/v1/runs/{run['runId']}/prompt")
    for of in ("systemPrompt", "message"):
        data = prompt[of].encode()
        parts = [part for part in prompt["parts"] if part["of"] == of]
        assert b"".join(data[part["start"] : part["end"]] for part in parts) == data
        for part in parts:
            digest = hashlib.sha256(data[part["start"] : part["end"]]).hexdigest()
            assert part["sha256"] == digest
    assert "täsk" in prompt["message"]
    refused = server.spawn(session="agent:narrow:prompts", agentId="main").json()
    answer = server.http.get(f"/v1/runs/{refused['runId']}/prompt")
    problem_of(answer, 409, "not_started")


def test_log_head_is_hash_of_the_event_then(server: Server) -> None:
    server.announced(session=server.new_session())
    for event in server.get("/v1/events", order="desc", limit=2)["items"]:
        answer = server.http.get("/v1/log", params={"at": f"pos:{event['position']}"})
        head = answer.json()
        assert head["position"] == int(answer.headers["Spawnlog-Position"]) == event["position"]
        assert (head["chainHash"], head["recordedAt"]) == (event["chainHash"], event["recordedAt"])
        assert head["logId"] == answer.headers["Spawnlog-Log"]
    assert re.fullmatch("[0-9a-f]{64}", head["chainHash"])
    before = server.get("/v1/log", at="pos:0")
    assert (before["position"], before["chainHash"], before["recordedAt"]) == (0, None, None)


def test_administrator_begins_and_stops_verifications(server: Server) -> None:
    start = "/v1/log/verifications"
    stop = f"{start}/current/stop"
    with server.with_token(server.secrets["watcher"]) as watcher:
        assert watcher.get("/v1/log").status_code == 200
        for path in (start, stop):
            problem = problem_of(watcher.post(path), 403, "not_permitted")
            assert problem["detail"] == 'this token lacks the scope "admin"'
    with server.with_token(server.secrets["everything"]) as everything:
        answer = everything.post(start)
        assert answer.status_code == 202
        begun = answer.json()["verification"]
        assert begun["origin"] == "server"
        assert everything.post(stop).status_code == 200
        newest = everything.get("/v1/log").json()["verifications"][0]
        assert (newest["number"], newest["startedBy"]) == (begun["number"], begun["startedBy"])
