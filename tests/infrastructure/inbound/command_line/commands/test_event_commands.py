"""`spawnlog event list`, once and live."""

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
