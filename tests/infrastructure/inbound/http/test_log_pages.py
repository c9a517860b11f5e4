"""The log as pages, and where it ends."""

import hashlib
import re
from typing import Any

import pytest

from tests.support.http.problems import pointers_of, problem_of
from tests.support.http.requests import pages_of_events
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server


ENVELOPE = """position stream version type typeVersion recordedAt occurredAt eventId commandId
    actor causation correlation runId traceparent configRevision writerVersion appendLast chainHash
    payload"""


def all_events(house: House, **query: Any) -> list[dict[str, Any]]:
    """Every event of a question, through all pages."""
    items: list[dict[str, Any]] = []
    for answer in pages_of_events(house.http, **query):
        page = answer.json()
        assert page["head"] == int(answer.headers["spawnlog-position"])
        assert len(page["items"]) <= int(query.get("limit", 50))
        items += page["items"]
    return items


@pytest.fixture(scope="module")
def run(house: House) -> dict[str, Any]:
    return house.ended(house.session("pages"))


def test_positions_have_no_gaps(house: House, run: dict[str, Any]) -> None:
    positions = [item["position"] for item in all_events(house, limit=500)]
    assert positions == list(range(1, len(positions) + 1))


def newest_events(house: House, **query: Any) -> list[dict[str, Any]]:
    """Every event of a question from the newest on, through all pages."""
    items: list[dict[str, Any]] = []
    before: int | None = None
    while True:
        question = {**query, "order": "desc"} if before is None else {**query, "before": before}
        answer = house.http.get("/v1/events", params=question)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= int(query.get("limit", 50))
        items += page["items"]
        if page["nextBefore"] is None:
            return items
        before = page["nextBefore"]


def test_the_newest_events_come_first_when_wanted(house: House, run: dict[str, Any]) -> None:
    at = f"pos:{house.head()}"
    every = all_events(house, at=at, limit=500)
    assert newest_events(house, at=at, limit=500) == every[::-1]
    for question in (
        {"runId": run["runId"]},
        {"tree": run["requesterSessionKey"]},
        {"types": "RunEnded,RunStarted"},
        {"actor": "system", "runId": run["runId"]},
    ):
        found = newest_events(house, at=at, limit=7, **question)
        assert found
        assert found == all_events(house, at=at, limit=500, **question)[::-1]
    page = house.get("/v1/events", before=5, limit=2)
    assert [item["position"] for item in page["items"]] == [4, 3]
    assert (page["nextAfter"], page["nextBefore"]) == (4, 3)
    rest = house.get("/v1/events", before=5, after=2)
    assert [item["position"] for item in rest["items"]] == [4, 3]
    assert rest["nextBefore"] is None
    assert house.get("/v1/events", before=1)["items"] == []
    assert house.get("/v1/events", limit=2)["nextBefore"] is None


def test_what_follows_the_newest_page_stands_behind_it(house: House) -> None:
    page = house.get("/v1/events", order="desc", limit=1)
    assert page["items"][0]["position"] == page["nextAfter"] == page["head"]
    house.ended(house.session())
    later = house.get("/v1/events", after=page["nextAfter"], limit=1)
    assert later["items"][0]["position"] == page["nextAfter"] + 1


def test_the_log_reads_as_it_was(house: House, run: dict[str, Any]) -> None:
    own = all_events(house, runId=run["runId"])
    middle = own[4]["position"]
    answer = house.http.get("/v1/events", params={"at": f"pos:{middle}", "runId": run["runId"]})
    assert answer.headers["spawnlog-position"] == str(middle)
    page = answer.json()
    assert page["items"] == own[:5]
    assert (page["nextAfter"], page["head"]) == (middle, middle)
    latest = house.get("/v1/events", at=f"pos:{middle}", order="desc")
    assert latest["items"][0] == own[4]
    asked = own[0]["position"]
    unborn = house.http.get("/v1/events", params={"at": f"pos:{asked - 1}", "runId": run["runId"]})
    problem_of(unborn, 404, "not_found")


def test_events_are_narrowed_by_who_acted(house: House, run: dict[str, Any]) -> None:
    of_run = all_events(house, runId=run["runId"])
    for word in ("token", "admin", "system"):
        found = all_events(house, runId=run["runId"], actor=word)
        assert found
        assert found == [one for one in of_run if word in one["actor"].values()]
    assert all_events(house, runId=run["runId"], actor="nobody") == []
    head = house.head()
    page = house.get("/v1/events", actor="nobody", limit=500)
    assert page["items"] == []
    assert page["nextAfter"] >= head


def test_page_before_a_position_is_not_in_ascending_order(house: House) -> None:
    answer = house.http.get("/v1/events", params={"before": 5, "order": "asc"})
    assert pointers_of(problem_of(answer, 422, "invalid_request")) == ["/query/order"]


@pytest.mark.parametrize(
    "query", [{"before": 5}, {"order": "desc"}, {"at": "pos:1"}, {"limit": 50}]
)
def test_a_stream_goes_on_from_now_alone(house: House, query: dict[str, Any]) -> None:
    answer = house.http.get("/v1/events", params=query, headers={"Accept": "text/event-stream"})
    problem = problem_of(answer, 422, "invalid_request")
    assert "a stream goes on from now" in problem["detail"]


def test_an_event_has_its_whole_envelope(house: House, run: dict[str, Any]) -> None:
    for item in all_events(house, runId=run["runId"]):
        assert set(item) == set(ENVELOPE.split())
        assert set(item["actor"]) == {"kind", "token", "session"}
        assert len(item["chainHash"]) == 64
        assert item["appendLast"] >= item["position"]
    asked = next(
        item for item in all_events(house, runId=run["runId"]) if item["type"] == "SpawnRequested"
    )
    assert asked["actor"] == {"kind": "token", "token": "admin", "session": None}


def test_a_page_begins_behind_after(house: House, run: dict[str, Any]) -> None:
    head = house.head()
    page = house.get("/v1/events", after=3, limit=2)
    assert [item["position"] for item in page["items"]] == [4, 5]
    assert page["nextAfter"] == 5
    page = house.get("/v1/events", after=head)
    assert page["items"] == []
    assert page["nextAfter"] >= head
    beyond = house.get("/v1/events", after=head + 1_000_000)
    assert beyond["items"] == []


def test_events_are_narrowed_by_type_run_and_tree(house: House, run: dict[str, Any]) -> None:
    run_id, session = run["runId"], run["requesterSessionKey"]
    of_run = all_events(house, runId=run_id)
    assert {item["runId"] for item in of_run} == {run_id}
    assert len(of_run) >= 9
    of_types = all_events(house, runId=run_id, types="RunStarted,RunEnded")
    assert [item["type"] for item in of_types] == ["RunStarted", "RunEnded"]
    assert all_events(house, runId=run_id, types=" RunStarted , ") == of_types[:1]
    assert all_events(house, runId=run_id, types=["RunEnded", "RunStarted"]) == of_types
    of_tree = all_events(house, tree=session, limit=3)
    assert {item["correlation"] for item in of_tree} == {session}
    assert {item["position"] for item in of_run} <= {item["position"] for item in of_tree}
    assert all_events(house, tree=session.upper()) == of_tree
    assert all_events(house, tree=house.session()) == []
    assert all(item["type"] == "RunEnded" for item in all_events(house, types="RunEnded"))


def test_the_events_of_a_run_are_those_of_its_stream(house: House, run: dict[str, Any]) -> None:
    path = f"/v1/runs/{run['runId']}/events"
    items = house.get(path)["items"]
    assert [item["version"] for item in items] == list(range(1, run["version"] + 1))
    assert {item["stream"] for item in items} == {f"run:{run['runId']}"}


def test_an_unknown_run_has_no_events(house: House) -> None:
    unknown = "12345678-1234-4234-8234-123456781234"
    answer = house.http.get("/v1/events", params={"runId": unknown})
    problem_of(answer, 404, "not_found")
    problem_of(house.http.get(f"/v1/runs/{unknown}/events"), 404, "not_found")
    problem_of(house.http.get("/v1/events", params={"runId": "x"}), 404, "not_found")


def test_the_trace_of_a_request_is_kept_when_it_is_one(house: House) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for sent, kept in ((trace, trace), ("00-xyz", None), (trace.upper(), trace)):
        answer = house.http.post(
            "/v1/spawns",
            json={"requester": {"sessionKey": house.session()}, "task": "x"},
            headers={"traceparent": sent},
        )
        events = all_events(house, runId=answer.json()["runId"], types="SpawnRequested")
        assert [event["traceparent"] for event in events] == [kept]


def test_a_transcript_has_tools_if_they_are_asked_for(house: House) -> None:
    run = house.ended(house.session(), agentId="talker")
    path = f"/v1/runs/{run['runId']}/transcript"
    spoken = house.get(path)["items"]
    every = house.get(path, tools="true")["items"]
    assert {"tool", "usage"} <= {item["kind"] for item in every}
    assert not {"tool", "usage"} & {item["kind"] for item in spoken}
    assert [item for item in every if item in spoken] == spoken


def test_a_prompt_is_told_part_by_part(house: House) -> None:
    run = house.ended(house.session(), task="täsk", contextPreamble="préamble")
    prompt = house.get(f"/v1/runs/{run['runId']}/prompt")
    for of in ("systemPrompt", "message"):
        data = prompt[of].encode()
        parts = [part for part in prompt["parts"] if part["of"] == of]
        assert b"".join(data[part["start"] : part["end"]] for part in parts) == data
        for part in parts:
            digest = hashlib.sha256(data[part["start"] : part["end"]]).hexdigest()
            assert part["sha256"] == digest
    assert "täsk" in prompt["message"]


def test_there_is_no_prompt_before_the_start(house: House) -> None:
    refused = house.spawn("agent:narrow:prompts", agentId="main").json()
    answer = house.http.get(f"/v1/runs/{refused['runId']}/prompt")
    problem_of(answer, 409, "not_started")


START = "/v1/log/verifications"
STOP = f"{START}/current/stop"


def test_the_head_is_the_hash_of_the_last_event_then(house: House) -> None:
    house.ended(house.session())
    newest = house.get("/v1/events", order="desc", limit=2)["items"]
    for event in newest:
        answer = house.http.get("/v1/log", params={"at": f"pos:{event['position']}"})
        head = answer.json()
        assert head["position"] == event["position"]
        assert int(answer.headers["Spawnlog-Position"]) == event["position"]
        assert (head["chainHash"], head["recordedAt"]) == (event["chainHash"], event["recordedAt"])
        assert head["logId"] == answer.headers["Spawnlog-Log"]
    assert re.fullmatch("[0-9a-f]{64}", head["chainHash"])
    before = house.get("/v1/log", at="pos:0")
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
