"""Output of a running run can be read at once, at every server, with its own times."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from tests.support.servers.databases import Databases
from tests.support.servers.narrators import heard, narrate, narrating, said
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def page_of(server: Server, run_id: str, **query: Any) -> dict[str, Any]:
    """Return a page of a transcript."""
    answer = server.http.get(f"/v1/runs/{run_id}/transcript", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def texts(entries: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the texts of entries."""
    return [entry["body"].get("text") for entry in entries]


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    with serving(databases, narrating) as running:
        yield running


def position_of(server: Server, run_id: str, event_type: str) -> int:
    events = server.http.get(f"/v1/runs/{run_id}/events").json()["items"]
    return next(int(event["position"]) for event in events if event["type"] == event_type)


def instants(entries: list[dict[str, Any]]) -> list[datetime]:
    return [datetime.fromisoformat(entry["recordedAt"]) for entry in entries]


def test_fork_of_a_requester_at_work_has_all_it_said(server: Server) -> None:
    heir = {"task": json.dumps([said("I remember")]), "agentId": "main", "context": "fork"}
    requester = narrate(
        server, said("I know the word"), {"spawn": heir, "note": "forked", "await": "fork.go"}
    )
    answer = json.loads(server.note("forked"))
    assert answer["warnings"] == []
    heard = server.transcript(answer["runId"])
    assert heard[0]["kind"] == "session"
    assert heard[0]["body"]["entries"] == 2
    assert texts(heard[1:3]) == [texts(server.transcript(requester))[0], "I know the word"]
    server.touch("fork.go")
    server.run(answer["runId"], "ended")
    assert texts(server.transcript(answer["runId"]))[-1] == "I remember"


def test_transcript_at_the_start_holds_the_task(server: Server) -> None:
    run_id = narrate(server, {"note": "begun", "await": "start.go"})
    server.run(run_id, "started")
    (first,) = server.transcript(run_id)
    started = position_of(server, run_id, "RunStarted")
    assert server.transcript(run_id, at=f"pos:{started}") == [first]
    assert server.transcript(run_id, at=f"pos:{started - 1}") == []
    server.touch("start.go")
    run = server.run(run_id, "ended")
    assert server.transcript(run_id, at=f"pos:{started}") == [first]
    assert first["recordedAt"] == run["startedAt"]


@pytest.mark.parametrize("ends", [True, False])
def test_entries_bear_their_own_times(server: Server, ends: bool) -> None:
    pause = 0.2
    wait = {} if ends else {"await": "times.go"}
    run_id = narrate(server, said("first") | {"pause": pause}, said("second"), wait)
    if ends:
        server.run(run_id, "ended")
    else:
        heard(server, run_id, said("second"))
    _, first, second = instants(server.transcript(run_id))
    assert (second - first).total_seconds() > pause * 0.8
    server.touch("times.go")


# Following a run.


def events_of(server: Server, run_id: str, **more: Any) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the whole stream of a transcript: number, name and data of each event."""
    found = []
    number, name = 0, ""
    headers = {"Accept": "text/event-stream", **more.pop("headers", {})}
    path = f"/v1/runs/{run_id}/transcript"
    with server.http.stream("GET", path, headers=headers, params=more) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            field, _, value = line.partition(": ")
            if field == "id":
                number = int(value)
            elif field == "event":
                name = value
            elif field == "data":
                found.append((number, name, json.loads(value)))
    return found


def usage(taken: int, given: int) -> dict[str, Any]:
    return {"say": {"type": "usage", "inputTokens": taken, "outputTokens": given}}


def test_wait_returns_with_the_next_entry(server: Server) -> None:
    run_id = narrate(server, {"await": "next.go"}, said("here"), {"await": "next.end"})
    page = page_of(server, run_id, wait="30s")
    assert (page["nextAfter"], page["lastSequence"], page["complete"]) == (None, 1, False)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(page_of, server, run_id, after=1, wait="30s")
        server.touch("next.go")
        page = waiting.result(timeout=20)
    assert (texts(page["items"]), page["lastSequence"]) == (["here"], 2)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(page_of, server, run_id, after=2, wait="30s")
        server.touch("next.end")
        page = waiting.result(timeout=20)
    assert (page["items"], page["lastSequence"], page["complete"]) == ([], 2, True)


def test_stream_has_every_entry_and_the_end(server: Server) -> None:
    run_id = narrate(
        server, said("one"), {"note": "streamed", "await": "stream.go"}, usage(3, 4), said("two")
    )
    server.note("streamed")
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(events_of, server, run_id, tools="true")
        server.touch("stream.go")
        events = reading.result(timeout=30)
    assert [name for _, name, _ in events] == ["entry"] * 4 + ["end"]
    assert [number for number, _, _ in events] == [1, 2, 3, 4, 4]
    assert texts([data for _, _, data in events[1:4]]) == ["one", None, "two"]
    run = server.run(run_id, "ended")
    end = events[-1][2]
    assert end.pop("stage") in ("ended", "announced", "archived")
    assert end == {
        "runId": run_id,
        "status": "done",
        "outcome": "success",
        "continuedBy": None,
        "lastSequence": 4,
    }
    assert [data for _, _, data in events[:4]] == server.transcript(run_id)
    assert run["transcriptEntries"] == 4
    behind = events_of(server, run_id, headers={"Last-Event-ID": "3"})
    assert [number for number, _, _ in behind] == [4, 4]
    assert [number for number, _, _ in events_of(server, run_id, after=4)] == [4]


def test_run_at_work_shows_usage_progress_and_time(server: Server) -> None:
    progress = {"say": {"type": "progress", "text": "half way"}}
    run_id = narrate(server,
        usage(1_000_000, 10), progress, {"await": "spend.more"},
        usage(0, 90), {"await": "spend.go"},
    )  # fmt: skip
    heard(server, run_id, progress)
    first = server.http.get(f"/v1/runs/{run_id}")
    run = first.json()
    assert (run["status"], run["transcriptEntries"]) == ("running", 3)
    assert (run["usage"]["inputTokens"], run["usage"]["outputTokens"]) == (1_000_000, 10)
    assert run["estimatedCostUsd"] == pytest.approx(2.00008)
    assert run["progress"]["text"] == "half way"
    items = server.http.get("/v1/runs", params={"status": "running"}).json()["items"]
    (listed,) = [item for item in items if item["runId"] == run_id]
    assert listed["usage"] == run["usage"]
    known = {"If-None-Match": first.headers["ETag"]}
    assert server.http.get(f"/v1/runs/{run_id}", headers=known).status_code == 304
    server.touch("spend.more")
    heard(server, run_id, usage(0, 90))
    again = server.http.get(f"/v1/runs/{run_id}", headers=known)
    later = again.json()
    assert later["usage"]["outputTokens"] == 100
    assert later["runtimeMs"] > run["runtimeMs"] >= 0
    started = position_of(server, run_id, "RunStarted")
    then = server.http.get(f"/v1/runs/{run_id}", params={"at": f"pos:{started}"}).json()
    assert (then["runtimeMs"], then["usage"], then["progress"]) == (None, None, None)
    server.touch("spend.go")
    ended = server.run(run_id, "ended")
    assert (ended["usage"]["outputTokens"], ended["progress"]) == (100, None)


def test_entries_reach_readers_at_another_server(server: Server) -> None:
    run_id = narrate(
        server, {"await": "other.go"}, usage(7, 1), said("heard"), {"await": "other.end"}
    )
    server.run(run_id, "started")
    with Server(server.data_dir, server.config, database_url=server.database_url) as second_server:
        path = f"/v1/runs/{run_id}/transcript"
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(
                second_server.http.get, path, params={"after": 1, "wait": "30s", "tools": "true"}
            )
            server.touch("other.go")
            page = waiting.result(timeout=20).json()
        assert page["items"][0]["kind"] == "usage"
        wait_for(
            "the second entry",
            lambda: second_server.run(run_id)["transcriptEntries"] == 3,
            seconds=5,
        )
        assert second_server.run(run_id)["usage"]["totalTokens"] == 8
        server.touch("other.end")
        assert second_server.http.get(path, params={"after": 3, "wait": "30s"}).json()["complete"]
