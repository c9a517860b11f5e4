"""`spawnlog event list`, `find` and `histogram`."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.client import CommandClient
from infrastructure.inbound.command_line.client.follow import follow_events
from infrastructure.inbound.command_line.display.failures import CommandError, UnreachableError
from spawnlog.core.location import ServerAddress
from tests.support.builders.api_runs import FIRST
from tests.support.servers.command_line import Command
from tests.support.servers.preloaded import ROOT
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

LIST, FIND, HISTOGRAM = "/v1/events", "/v1/events/find", "/v1/events/histogram"
GONE = problem(410, detail="another log")


def event(position: int) -> dict[str, Any]:
    return {
        "position": position,
        "type": "RunQueued",
        "recordedAt": "2026-03-01T09:30:00Z",
        "runId": FIRST,
        "payload": {"lane": "subagent"},
    }


def positions(lines: str) -> list[int]:
    return [json.loads(line)["position"] for line in lines.splitlines()]


# Lists.


def test_list_reads_pages_until_limit(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        after = int(request.query.get("after", 0))
        last = after + min(int(request.query["limit"]), 500)
        items = [event(number) for number in range(after + 1, last + 1)]
        return Reply({"items": items, "nextAfter": last, "head": 5000})

    api.on("GET", LIST, page)
    types = ["--type", "RunQueued", "--type", "RunEnded"]
    result = spawnlog("event", "list", "--limit", "600", *types)
    assert len(result.stdout.splitlines()) == 601
    assert api.asked[0].query["types"] == "RunQueued,RunEnded"
    assert [request.query.get("after") for request in api.asked] == [None, "500"]
    assert "--after 600" in result.stderr


def test_newest_events_are_read_backwards(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        end = int(request.query.get("before", 4001)) - 1
        first = end - min(int(request.query["limit"]), 500) + 1
        items = [event(number) for number in range(end, first - 1, -1)]
        return Reply({"items": items, "nextAfter": end, "nextBefore": first, "head": 5000})

    api.on("GET", LIST, page)
    result = spawnlog("event", "list", "--newest", "--limit", "600", "--actor", "admin")
    lines = result.stdout.splitlines()
    assert (len(lines), lines[1].split()[0]) == (601, "4000")
    requests = [
        (request.query.get("before"), request.query["order"], request.query["actor"])
        for request in api.asked
    ]
    assert requests == [(None, "desc", "admin"), ("3501", "desc", "admin")]
    assert "--before 3401" in result.stderr
    spawnlog("event", "list", "--before", "5", "--at", "pos:9", "--limit", "1")
    assert [api.asked[-1].query.get(name) for name in ("before", "at", "order")] == [
        *("5", "pos:9", None)
    ]


def test_oldest_page_is_the_last(spawnlog: Command, api: RecordedApi) -> None:
    last = Reply({"items": [event(2), event(1)], "nextAfter": 2, "nextBefore": None, "head": 900})
    api.on("GET", LIST, last)
    found = json.loads(spawnlog("event", "list", "--before", "3", "-o", "json").stdout)
    assert ([item["position"] for item in found["items"]], found["more"]) == ([2, 1], False)
    assert len(api.asked) == 1


def test_list_reads_on_after_empty_page(spawnlog: Command, api: RecordedApi) -> None:
    empty = Reply({"items": [], "nextAfter": 500, "head": 900})
    api.on("GET", LIST, empty, Reply({"items": [event(700)], "nextAfter": 900, "head": 900}))
    assert positions(spawnlog("event", "list", "-o", "jsonl").stdout) == [700]
    assert len(api.asked) == 2


# Following.


def streamed(
    *numbers: int, ending: str = "", break_off: bool = True, head: int | None = None
) -> Reply:
    messages = "".join(
        f"id: {number}\nevent: RunQueued\ndata: {json.dumps(event(number))}\n\n"
        for number in numbers
    )
    text = f": hello\n\n{messages}{ending}"
    headers = {} if head is None else {"Spawnlog-Position": str(head)}
    return Reply(text, content_type="text/event-stream", headers=headers, break_off=break_off)


CHECKPOINT = "id: 90\nevent: checkpoint\ndata: {}\n\n"
CUT_EVENT = 'id: 6\nevent: RunQueued\ndata: {"posi'


@pytest.mark.parametrize(
    ("streams", "query", "seen", "resumed"),
    [
        ([streamed(5, 6), streamed(7)], {"after": "4"}, [5, 6, 7], ["6", "7"]),
        ([streamed(5, ending=CHECKPOINT)], {}, [5], ["90"]),
        ([streamed(head=41), streamed(42)], {}, [42], ["41", "42"]),
        ([streamed(5, ending=CUT_EVENT), streamed(6)], {}, [5, 6], ["5", "6"]),
        ([streamed(5, break_off=False), streamed(6)], {}, [5, 6], ["5", "6"]),
    ],
    ids=["broken off", "checkpoint", "broken off before an event", "cut event", "ended"],
)
def test_following_resumes_after_last_event(
    streams: list[Reply],
    query: dict[str, str],
    seen: list[int],
    resumed: list[str],
    api: RecordedApi,
) -> None:
    api.on("GET", LIST, *streams, GONE)
    found = []
    with CommandClient(ServerAddress(api.url)) as client:
        events = follow_events(client, query, pause_seconds=0.01)
        with contextlib.suppress(CommandError):
            while True:
                found.append(next(events)["position"])
    assert found == seen
    assert [request.headers.get("last-event-id") for request in api.asked] == [None, *resumed]
    assert api.asked[0].query == query
    assert api.asked[0].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (problem(503, detail="not ready"), UnreachableError, "not ready"),
        (Reply({"items": []}), CommandError, "no event stream"),
    ],
)
def test_following_needs_a_stream_at_first(
    reply: Reply, error: type[CommandError], message: str, api: RecordedApi
) -> None:
    api.on("GET", LIST, reply)
    with CommandClient(ServerAddress(api.url)) as client, pytest.raises(error, match=message):
        next(follow_events(client, {}))


@pytest.mark.kill
def test_ctrl_c_ends_following_without_traceback(api: RecordedApi) -> None:
    held = threading.Event()

    def hold(request: Asked) -> Reply:
        if request.headers.get("last-event-id") is None:
            return streamed(5)
        held.wait(20)
        return streamed(6)

    api.on("GET", LIST, hold)
    command = [sys.executable, "-m", "infrastructure.inbound.command_line.main"]
    with subprocess.Popen(
        [*command, "event", "list", "--follow", "--url", api.url],
        cwd=ROOT,
        env={**os.environ, "SPAWNLOG_TOKEN": "t"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # If the tests run in the background, child processes may inherit the signal as ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().split()[0] == "5"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            held.set()
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors


# Searches.


def breakpoint_at(position: int) -> dict[str, Any]:
    return {
        "position": position,
        "asOf": f"pos:{position}",
        "recordedAt": "2026-03-01T09:30:00Z",
        "runId": FIRST,
        "sessionKey": None,
        "before": {"running": 6},
        "after": {"running": 7},
        "alreadyHeld": False,
        "event": {"type": "RunStarted", "position": position, "configRevision": 2, "payload": {}},
    }


def found(*numbers: int, cursor: str | None = None, method: str = "scan") -> Reply:
    answer = {"method": method, "eventsRead": 100, "reads": 2, "searchedTo": 400}
    bounds = {"fromPosition": 0, "toPosition": 900, "nextCursor": cursor}
    return Reply({"items": [breakpoint_at(number) for number in numbers], **answer, **bounds})


def test_find_shows_first_difference(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, found(400, cursor="more"))
    result = spawnlog("event", "find", "--when", "running > 6", "--tree", "main", "--to", "pos:9")
    assert result.exit_code == 0
    query = {"when": "running > 6", "tree": "main", "to": "pos:9", "limit": "1"}
    assert api.asked[0].query == query
    for shown in ("pos:400", "running=6", "running=7"):
        assert shown in result.stdout
    for note in ("run list --at pos:400", "by a scan of 100 events"):
        assert note in result.stderr


def test_find_searches_on_until_found(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, found(cursor="a"), found(cursor="b"), found(800))
    result = spawnlog("event", "find", "--rule", "active-children", "-o", "json")
    assert [request.query.get("cursor") for request in api.asked] == [None, "a", "b"]
    assert {request.query["rule"] for request in api.asked} == {"active_children"}
    shown = json.loads(result.stdout)
    assert (shown["eventsRead"], shown["reads"], shown["more"]) == (300, 6, False)
    assert [item["position"] for item in shown["items"]] == [800]


def test_find_without_result_exits_4(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, found(cursor="a"), found(method="bisection"))
    result = spawnlog("event", "find", "--field", "outcome", "--becomes", "error")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "nothing found up to pos:900; by bisection, with 4 reads" in result.stderr
    assert api.asked[0].query == {"field": "outcome", "becomes": "error", "limit": "1"}


def test_find_last_reads_every_page(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, found(1, 2, cursor="a"), found(3, cursor="b"), found())
    result = spawnlog("event", "find", "--type", "RunEnded", "--last", "-o", "jsonl")
    assert positions(result.stdout) == [3]
    assert api.asked[0].query["limit"] == "100"


def test_find_reads_pages_until_limit(spawnlog: Command, api: RecordedApi) -> None:
    def page(request: Asked) -> Reply:
        start, size = int(request.query.get("cursor", 0)), int(request.query["limit"])
        return found(*range(start + 1, start + size + 1), cursor=str(start + size))

    api.on("GET", FIND, page)
    result = spawnlog("event", "find", "--field", "stage", "--changes", "--limit", "150")
    assert [request.query["limit"] for request in api.asked] == ["100", "50"]
    assert api.asked[0].query["changes"] == "true"
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POSITION", "TIME", "RUN", "EVENT", "BEFORE", "AFTER"]
    assert len(lines) == 151


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (problem(422, code="invalid_request", detail="/query/when: column 10: x"), "column 10"),
        (Reply({"items": "none"}), ""),
    ],
)
def test_find_shows_failure(
    reply: Reply, message: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", FIND, reply)
    result = spawnlog("event", "find", "--when", "running >")
    assert result.exit_code == 2
    assert message in result.stderr


# Histograms.


def bucket(first: int | None, events: int, **counts: Any) -> dict[str, Any]:
    return {
        "firstPosition": first,
        "lastPosition": None if first is None else first + events - 1,
        "firstAt": None,
        "lastAt": None,
        "since": "2026-03-01T09:00:00.000000Z",
        "until": "2026-03-01T09:01:00.000000Z",
        "events": events,
        **{"types": {}, "outcomes": {}, "rules": {}, **counts},
    }


def test_histogram_shows_events_ends_and_refusals(api: RecordedApi, spawnlog: Command) -> None:
    items = [
        bucket(1, 40, outcomes={"success": 3}),
        bucket(None, 0),
        bucket(41, 20, outcomes={"error": 1, "success": 2}, rules={"active_children": 7}),
    ]
    counted = {"by": "time", "after": 0, "until": 60, "countedTo": 44, "items": items}
    api.on("GET", HISTOGRAM, Reply({**counted, "countedTo": None}), Reply(counted))
    shown = spawnlog("event", "histogram", "--buckets", "3", "--from", "pos:0", "--tree", "main")
    assert shown.exit_code == 0, shown.output
    header, first, second, third = shown.stdout.splitlines()
    assert header.split() == ["FROM", "TO", "SINCE", "EVENTS", "ENDED", "REFUSED", "BY"]
    assert first.split()[:2] == ["1", "40"]
    assert first.count("█") == 2 * third.count("█") == 24
    assert "█" not in second
    assert "2 success, 1 error" in third
    assert third.endswith("7 active_children")
    query = {"buckets": "3", "by": "time", "from": "pos:0", "tree": "main"}
    assert [dict(request.query) for request in api.asked] == [query]
    assert "only counted" not in shown.stderr
    assert "only counted up to position 44" in spawnlog("event", "histogram").stderr
