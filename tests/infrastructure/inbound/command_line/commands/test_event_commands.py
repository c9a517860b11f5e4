"""`spawnlog event list`, `find` and `histogram`."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.client import CommandClient
from infrastructure.inbound.command_line.client.follow import follow_events
from infrastructure.inbound.command_line.display.failures import CommandFailed, Unreachable
from spawnlog.core.location import ServerAddress
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

GONE = problem(410, detail="another log")

PROJECT = Path(__file__).resolve().parents[5]


def event(position: int, event_type: str = "RunQueued") -> dict[str, Any]:
    return {
        "position": position,
        "type": event_type,
        "recordedAt": "2026-03-01T09:30:00Z",
        "runId": "11111111-0000-4000-8000-000000000001",
        "payload": {"lane": "subagent"},
    }


def streamed(*positions: int, ending: str = "", break_off: bool = True) -> Reply:
    messages = "".join(
        f"id: {position}\nevent: RunQueued\ndata: {json.dumps(event(position))}\n\n"
        for position in positions
    )
    return Reply(
        f": hello\n\n{messages}{ending}", content_type="text/event-stream", break_off=break_off
    )


def followed(api: RecordedApi, **parameters: str) -> list[int]:
    """The positions that a follower sees until the server has another log."""
    seen = []
    with CommandClient(ServerAddress(api.url)) as client:
        events = follow_events(client, parameters, pause_seconds=0.01)
        with contextlib.suppress(CommandFailed):
            while True:
                seen.append(next(events)["position"])
    return seen


def test_pages_are_read_until_the_limit_and_the_rest_is_told(
    spawnlog: Command, api: RecordedApi
) -> None:
    def page(asked: Asked) -> Reply:
        after = int(asked.query.get("after", 0))
        last = after + min(int(asked.query["limit"]), 500)
        return Reply(
            {
                "items": [event(number) for number in range(after + 1, last + 1)],
                "nextAfter": last,
                "head": 5000,
            }
        )

    api.on("GET", "/v1/events", page)
    result = spawnlog(
        "event", "list", "--limit", "600", "--type", "RunQueued", "--type", "RunEnded"
    )
    assert len(result.stdout.splitlines()) == 601
    assert api.asked[0].query["types"] == "RunQueued,RunEnded"
    assert [asked.query.get("after") for asked in api.asked] == [None, "500"]
    assert "--after 600" in result.stderr


def test_the_newest_events_are_read_backwards(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        end = int(asked.query.get("before", 4001)) - 1
        first = end - min(int(asked.query["limit"]), 500) + 1
        items = [event(number) for number in range(end, first - 1, -1)]
        return Reply({"items": items, "nextAfter": end, "nextBefore": first, "head": 5000})

    api.on("GET", "/v1/events", page)
    result = spawnlog("event", "list", "--newest", "--limit", "600", "--actor", "admin")
    assert result.stdout.splitlines()[1].split()[0] == "4000"
    assert len(result.stdout.splitlines()) == 601
    assert [asked.query.get("before") for asked in api.asked] == [None, "3501"]
    assert {asked.query["order"] for asked in api.asked} == {"desc"}
    assert {asked.query["actor"] for asked in api.asked} == {"admin"}
    assert "--before 3401" in result.stderr
    spawnlog("event", "list", "--before", "5", "--at", "pos:9", "--limit", "1")
    assert {name: api.asked[-1].query.get(name) for name in ("before", "at", "order")} == {
        "before": "5",
        "at": "pos:9",
        "order": None,
    }


def test_the_oldest_page_is_the_last_one(spawnlog: Command, api: RecordedApi) -> None:
    last = Reply({"items": [event(2), event(1)], "nextAfter": 2, "nextBefore": None, "head": 900})
    api.on("GET", "/v1/events", last)
    result = spawnlog("event", "list", "--before", "3", "-o", "json")
    found = json.loads(result.stdout)
    assert [one["position"] for one in found["items"]] == [2, 1]
    assert found["more"] is False
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    "given", [["--newest"], ["--before", "7"], ["--at", "-5m"], ["--limit", "50"]]
)
def test_what_is_followed_goes_on_from_now(
    spawnlog: Command, api: RecordedApi, given: list[str]
) -> None:
    result = spawnlog("event", "list", "--follow", *given)
    assert result.exit_code == 2
    assert "--follow goes on" in result.stderr
    assert api.asked == []


def test_pages_end_at_the_head_even_when_filters_leave_them_empty(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on(
        "GET",
        "/v1/events",
        Reply({"items": [], "nextAfter": 500, "head": 900}),
        Reply({"items": [event(700)], "nextAfter": 900, "head": 900}),
    )
    result = spawnlog("event", "list", "-o", "jsonl")
    assert [json.loads(line)["position"] for line in result.stdout.splitlines()] == [700]
    assert len(api.asked) == 2


def test_following_resumes_after_the_last_event_it_saw(api: RecordedApi) -> None:
    api.on("GET", "/v1/events", streamed(5, 6), streamed(7), GONE)
    assert followed(api, after="4") == [5, 6, 7]
    assert [asked.headers.get("last-event-id") for asked in api.asked] == [None, "6", "7"]
    assert api.asked[0].query == {"after": "4"}
    assert api.asked[0].headers["accept"] == "text/event-stream"


def test_a_checkpoint_is_remembered_and_not_shown(api: RecordedApi) -> None:
    checkpoint = "id: 90\nevent: checkpoint\ndata: {}\n\n"
    api.on("GET", "/v1/events", streamed(5, ending=checkpoint), GONE)
    assert followed(api) == [5]
    assert api.asked[1].headers["last-event-id"] == "90"


def test_nothing_is_missed_when_the_first_connection_breaks_before_any_event(
    api: RecordedApi,
) -> None:
    silent = Reply(
        ": hello\n\n",
        content_type="text/event-stream",
        headers={"Spawnlog-Position": "41"},
        break_off=True,
    )
    api.on("GET", "/v1/events", silent, streamed(42), GONE)
    assert followed(api) == [42]
    assert [asked.headers.get("last-event-id") for asked in api.asked] == [None, "41", "42"]


def test_an_event_cut_in_the_middle_is_read_again(api: RecordedApi) -> None:
    cut = 'id: 6\nevent: RunQueued\ndata: {"posi'
    api.on("GET", "/v1/events", streamed(5, ending=cut), streamed(6), GONE)
    assert followed(api) == [5, 6]
    assert api.asked[1].headers["last-event-id"] == "5"


def test_a_stream_that_the_server_ends_is_taken_up_again(api: RecordedApi) -> None:
    api.on("GET", "/v1/events", streamed(5, break_off=False), streamed(6), GONE)
    assert followed(api) == [5, 6]
    assert [asked.headers.get("last-event-id") for asked in api.asked] == [None, "5", "6"]


def test_a_server_that_is_not_there_at_first_is_not_waited_for(api: RecordedApi) -> None:
    api.on("GET", "/v1/events", problem(503, detail="not ready"))
    with CommandClient(ServerAddress(api.url)) as client, pytest.raises(Unreachable):
        next(follow_events(client, {}))


def test_an_answer_that_is_no_stream_ends_following(api: RecordedApi) -> None:
    api.on("GET", "/v1/events", Reply({"items": []}))
    with (
        CommandClient(ServerAddress(api.url)) as client,
        pytest.raises(CommandFailed, match="no event stream"),
    ):
        next(follow_events(client, {}))


def test_a_stream_cannot_be_one_json_document(spawnlog: Command, api: RecordedApi) -> None:
    result = spawnlog("event", "list", "--follow", "--output", "json")
    assert result.exit_code == 2
    assert "jsonl" in result.stderr


@pytest.mark.kill
def test_ctrl_c_ends_following_without_a_traceback(api: RecordedApi) -> None:
    held = threading.Event()

    def hold(asked: Asked) -> Reply:
        if asked.headers.get("last-event-id") is None:
            return streamed(5)
        held.wait(20)
        return streamed(6)

    api.on("GET", "/v1/events", hold)
    command = [sys.executable, "-m", "infrastructure.inbound.command_line.main"]
    with subprocess.Popen(
        [*command, "event", "list", "--follow", "--url", api.url],
        cwd=PROJECT,
        env={**os.environ, "SPAWNLOG_TOKEN": "t"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have the signal ignored for all below.
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


FIND = "/v1/events/find"

RUN = "11111111-0000-4000-8000-000000000001"


def breakpoint_at(position: int, **more: Any) -> dict[str, Any]:
    event = {"type": "RunStarted", "position": position, "configRevision": 2, "payload": {}}
    return {
        "position": position,
        "asOf": f"pos:{position}",
        "recordedAt": "2026-03-01T09:30:00Z",
        "runId": RUN,
        "sessionKey": None,
        "before": {"running": 6},
        "after": {"running": 7},
        "alreadyHeld": False,
        "event": event,
        **more,
    }


def answer(*items: dict[str, Any], cursor: str | None = None, **more: Any) -> Reply:
    return Reply(
        {
            "items": list(items),
            "method": "scan",
            "eventsRead": 100,
            "reads": 2,
            "fromPosition": 0,
            "toPosition": 900,
            "searchedTo": 400,
            "nextCursor": cursor,
            **more,
        }
    )


def test_the_first_one_is_shown_with_what_made_the_difference(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", FIND, answer(breakpoint_at(400), cursor="more"))
    result = spawnlog("event", "find", "--when", "running > 6", "--tree", "main", "--to", "pos:9")
    assert result.exit_code == 0
    assert api.asked[0].query == {
        "when": "running > 6",
        "tree": "main",
        "to": "pos:9",
        "limit": "1",
    }
    assert "pos:400" in result.stdout
    assert "running=6" in result.stdout
    assert "running=7" in result.stdout
    assert "run list --at pos:400" in result.stderr
    assert "by a scan of 100 events" in result.stderr


def test_it_goes_on_until_it_has_found_something_or_the_end_is_reached(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", FIND, answer(cursor="a"), answer(cursor="b"), answer(breakpoint_at(800)))
    result = spawnlog("event", "find", "--rule", "active-children", "-o", "json")
    assert [asked.query.get("cursor") for asked in api.asked] == [None, "a", "b"]
    assert {asked.query["rule"] for asked in api.asked} == {"active_children"}
    shown = json.loads(result.stdout)
    assert (shown["eventsRead"], shown["reads"], shown["more"]) == (300, 6, False)
    assert [item["position"] for item in shown["items"]] == [800]


def test_nothing_found_is_not_found(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, answer(cursor="a"), answer(method="bisection"))
    result = spawnlog("event", "find", "--field", "outcome", "--becomes", "error")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert "nothing found up to pos:900; by bisection, with 4 reads" in result.stderr
    assert api.asked[0].query == {"field": "outcome", "becomes": "error", "limit": "1"}


def test_the_last_one_is_that_behind_which_there_is_no_other(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on(
        "GET",
        FIND,
        answer(breakpoint_at(1), breakpoint_at(2), cursor="a"),
        answer(breakpoint_at(3), cursor="b"),
        answer(),
    )
    result = spawnlog("event", "find", "--type", "RunEnded", "--last", "-o", "jsonl")
    assert [json.loads(line)["position"] for line in result.stdout.splitlines()] == [3]
    assert api.asked[0].query["limit"] == "100"


def test_several_are_a_table_of_as_many_pages_as_it_takes(
    spawnlog: Command, api: RecordedApi
) -> None:
    def page(asked: Asked) -> Reply:
        start = int(asked.query.get("cursor", 0))
        size = int(asked.query["limit"])
        found = [breakpoint_at(start + place + 1) for place in range(size)]
        return answer(*found, cursor=str(start + size))

    api.on("GET", FIND, page)
    result = spawnlog("event", "find", "--field", "stage", "--changes", "--limit", "150")
    assert [asked.query["limit"] for asked in api.asked] == ["100", "50"]
    assert api.asked[0].query["changes"] == "true"
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POSITION", "TIME", "RUN", "EVENT", "BEFORE", "AFTER"]
    assert len(lines) == 151


def test_a_mistake_is_said_in_the_words_of_the_server(spawnlog: Command, api: RecordedApi) -> None:
    detail = "/query/when: column 10: a number is expected"
    api.on("GET", FIND, problem(422, code="invalid_request", detail=detail))
    result = spawnlog("event", "find", "--when", "running >")
    assert result.exit_code == 2
    assert "column 10" in result.stderr
    assert spawnlog("event", "find", "--type", "A,B").exit_code == 2
    assert spawnlog("event", "find", "--when", "x", "--last", "--limit", "2").exit_code == 2


def test_an_answer_that_is_none_is_an_error(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, Reply({"items": "none"}))
    assert spawnlog("event", "find", "--when", "running > 1").exit_code == 2


def test_what_is_left_out_is_named_by_its_option(spawnlog: Command, api: RecordedApi) -> None:
    nothing = spawnlog("event", "find")
    assert nothing.exit_code == 2
    assert "--when CONDITION, --field NAME, --type TYPE or --rule RULE" in nothing.stderr
    half = spawnlog("event", "find", "--field", "outcome")
    assert half.exit_code == 2
    assert "--becomes VALUE, or --changes" in half.stderr
    assert api.asked == []


PATH = "/v1/events/histogram"


def bucket(first: int | None, events: int, **counts: Any) -> dict[str, Any]:
    return {
        "firstPosition": first,
        "lastPosition": None if first is None else first + events - 1,
        "firstAt": None,
        "lastAt": None,
        "since": "2026-03-01T09:00:00.000000Z",
        "until": "2026-03-01T09:01:00.000000Z",
        "events": events,
        "types": {},
        "outcomes": {},
        "rules": {},
        **counts,
    }


FOUND = {
    "by": "time",
    "after": 0,
    "until": 60,
    "countedTo": None,
    "items": [
        bucket(1, 40, outcomes={"success": 3}),
        bucket(None, 0),
        bucket(41, 20, outcomes={"error": 1, "success": 2}, rules={"active_children": 7}),
    ],
}


def test_each_line_says_how_much_there_was_and_what_went_wrong(
    api: RecordedApi, spawnlog: Command
) -> None:
    api.on("GET", PATH, Reply(FOUND))
    shown = spawnlog("event", "histogram", "--buckets", "3", "--from", "pos:0", "--tree", "main")
    assert shown.exit_code == 0, shown.output
    header, first, second, third = shown.stdout.splitlines()
    assert header.split() == ["FROM", "TO", "SINCE", "EVENTS", "ENDED", "REFUSED", "BY"]
    assert first.split()[:2] == ["1", "40"]
    assert first.count("█") == 2 * third.count("█") == 24
    assert "█" not in second
    assert "2 success, 1 error" in third
    assert third.endswith("7 active_children")
    (asked,) = api.asked
    assert dict(asked.query) == {"buckets": "3", "by": "time", "from": "pos:0", "tree": "main"}


def test_what_was_not_counted_is_said(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", PATH, Reply(FOUND | {"countedTo": 44}))
    assert "only counted up to position 44" in spawnlog("event", "histogram").stderr


def test_another_unit_is_an_error_of_usage(spawnlog: Command) -> None:
    assert spawnlog("event", "histogram", "--by", "weight").exit_code == 2
    assert spawnlog("event", "histogram", "--buckets", "501").exit_code == 2
