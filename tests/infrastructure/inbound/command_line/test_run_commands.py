"""`spawnlog run …` against a server."""

import json
from typing import Any

import pytest

from tests.support.command_line import Command
from tests.support.recorded_api import Asked, RecordedApi, Reply, problem

FIRST = "11111111-0000-4000-8000-000000000001"
SECOND = "22222222-0000-4000-8000-000000000002"
KEY = "agent:counter:subagent:99999999-0000-4000-8000-000000000009"


def run_of(run_id: str, **members: Any) -> dict[str, Any]:
    return {
        "runId": run_id,
        "stage": "announced",
        "status": "done",
        "outcome": "success",
        "agentId": "counter",
        "requestedAgentId": "counter",
        "requesterSessionKey": "agent:main:main",
        "childSessionKey": KEY,
        "label": None,
        "taskPreview": "Count the words",
        "createdAt": "2026-03-01T09:30:00.125Z",
        "runtimeMs": 1200,
        **members,
    }


def listed(*runs: dict[str, Any]) -> Reply:
    return Reply({"items": list(runs), "nextCursor": None}, headers={"Spawnlog-Position": "42"})


def test_the_list_shows_a_place_and_a_short_name_for_each_run(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST), run_of(SECOND, status="failed")))
    result = spawnlog("run", "list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split()[:4] == ["#1", "11111111", "done", "counter"]
    assert lines[2].split()[:3] == ["#2", "22222222", "failed"]
    assert "Count the words" in lines[1]


def test_a_request_carries_the_token_and_asks_for_json(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed())
    spawnlog("run", "list")
    assert api.asked[0].headers["authorization"] == "Bearer a-token"
    assert api.asked[0].headers["accept"] == "application/json"


def test_filters_go_to_the_server_and_places_are_left_out(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    result = spawnlog("run", "list", "--agent", "counter", "--status", "done", "--limit", "7")
    assert api.asked[0].query == {"agentId": "counter", "status": "done", "limit": "7"}
    assert "#1" not in result.stdout


def test_a_long_list_is_read_page_by_page(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        start = int(asked.query.get("cursor", 0))
        size = int(asked.query["limit"])
        runs = [run_of(FIRST, label=f"run-{start + offset}") for offset in range(size)]
        return Reply({"items": runs, "nextCursor": str(start + size)})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "list", "--limit", "700", "--output", "jsonl")
    assert [asked.query["limit"] for asked in api.asked] == ["500", "200"]
    labels = [json.loads(line)["label"] for line in result.stdout.splitlines()]
    assert labels == [f"run-{number}" for number in range(700)]


def test_json_is_one_document_that_says_whether_there_is_more(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [run_of(FIRST)], "nextCursor": "c"}))
    printed = json.loads(spawnlog("run", "list", "--limit", "1", "-o", "json").stdout)
    assert printed["items"][0]["runId"] == FIRST
    assert printed["more"] is True


def test_a_label_with_a_terminal_sequence_is_shown_and_not_obeyed(
    spawnlog: Command, api: RecordedApi
) -> None:
    evil = "\x1b[2J[red]x[/red]\u202e"
    api.on("GET", "/v1/runs", listed(run_of(FIRST, label=evil, taskPreview="a\nb")))
    for form in ("table", "json", "jsonl"):
        stdout = spawnlog("run", "list", "--output", form).stdout
        assert "\x1b" not in stdout
        assert "\u202e" not in stdout
    table = spawnlog("run", "list").stdout
    assert "\\x1b[2J[red]x[/red]\\u202e" in table
    assert "a b" in table


def test_a_run_is_found_by_its_full_id_with_one_question(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, resultText="12 words")))
    result = spawnlog("run", "get", FIRST)
    assert result.exit_code == 0
    assert "12 words" in result.stdout
    assert len(api.asked) == 1


@pytest.mark.parametrize("name", ["last", "#1", "1111", "harbour", KEY])
def test_a_run_is_found_by_every_kind_of_name(
    name: str, spawnlog: Command, api: RecordedApi
) -> None:
    def runs(asked: Asked) -> Reply:
        wanted = asked.query.get("label")
        found = run_of(FIRST, label="harbour")
        return listed(*([found] if wanted in (None, "harbour") else []))

    api.on("GET", "/v1/runs", runs)
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    assert spawnlog("run", "get", name).exit_code == 0
    assert api.asked[-1].path == f"/v1/runs/{FIRST}"


def test_a_name_that_nothing_has_exits_with_4(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed())
    result = spawnlog("run", "get", "nobody")
    assert result.exit_code == 4
    assert 'no run is called "nobody"' in result.stderr
    assert result.stdout == ""


def test_an_unknown_id_exits_with_4(spawnlog: Command) -> None:
    assert spawnlog("run", "get", FIRST).exit_code == 4


def test_an_ambiguous_name_exits_with_2_and_tells_the_candidates(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST, label="same"), run_of(SECOND, label="same")))
    result = spawnlog("run", "get", "same")
    assert result.exit_code == 2
    assert FIRST in result.stderr
    assert SECOND in result.stderr


def test_a_name_beyond_what_is_searched_is_not_guessed(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        if "label" in asked.query:
            return listed()
        runs = [
            run_of(f"{SECOND[:-1]}{number % 10}") for number in range(int(asked.query["limit"]))
        ]
        return Reply({"items": runs, "nextCursor": "further"})

    api.on("GET", "/v1/runs", page)
    result = spawnlog("run", "get", "abcd")
    assert result.exit_code == 2
    assert "give the full id" in result.stderr


def test_a_run_whose_agent_was_overridden_says_so(spawnlog: Command, api: RecordedApi) -> None:
    run = run_of(FIRST, agentId="main", requestedAgentId="steward", warnings=["no price"])
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run))
    stdout = spawnlog("run", "get", FIRST).stdout
    assert "main (asked for: steward)" in stdout
    assert "no price" in stdout


def event(position: int, event_type: str, at: str, **payload: Any) -> dict[str, Any]:
    return {
        "position": position,
        "stream": f"run:{FIRST}",
        "version": position,
        "type": event_type,
        "recordedAt": at,
        "runId": FIRST,
        "payload": payload,
    }


def test_the_events_of_a_run_show_position_time_distance_type_and_facts(
    spawnlog: Command, api: RecordedApi
) -> None:
    events = [
        event(7, "SpawnRequested", "2026-03-01T09:30:00Z", requestedAgentId="counter"),
        event(9, "RunEnded", "2026-03-01T09:30:01.25Z", outcome="success", reason="exit"),
    ]
    api.on("GET", f"/v1/runs/{FIRST}/events", Reply({"items": events}))
    lines = spawnlog("run", "events", FIRST).stdout.splitlines()
    assert lines[1].split() == [
        *["7", "09:30:00.000", "+0.000s", "SpawnRequested", "agent", "counter"]
    ]
    assert lines[2].split()[2:] == ["+1.250s", "RunEnded", "success,", "exit"]


def test_the_transcript_is_read_to_its_end(spawnlog: Command, api: RecordedApi) -> None:
    def page(asked: Asked) -> Reply:
        after = int(asked.query.get("after", 0))
        entries = [
            {
                "sequence": number,
                "recordedAt": "2026-03-01T09:30:00Z",
                "kind": "message",
                "body": {"role": "assistant", "text": f"line {number}\x1b[1m"},
            }
            for number in range(after + 1, min(after + int(asked.query["limit"]), 60) + 1)
        ]
        return Reply({"items": entries, "nextAfter": entries[-1]["sequence"] if entries else after})

    api.on("GET", f"/v1/runs/{FIRST}/transcript", page)
    result = spawnlog("run", "log", FIRST)
    assert "[60] 09:30:00.000 message assistant" in result.stdout
    assert "    line 60\\x1b[1m" in result.stdout
    assert "\x1b" not in result.stdout
    assert "tools" not in api.asked[0].query


def test_a_cut_transcript_tells_how_to_go_on(spawnlog: Command, api: RecordedApi) -> None:
    entry = {"sequence": 3, "recordedAt": None, "kind": "tool", "body": {"name": "t", "input": {}}}
    api.on("GET", f"/v1/runs/{FIRST}/transcript", Reply({"items": [entry], "nextAfter": 3}))
    result = spawnlog("run", "log", FIRST, "--limit", "1", "--tools", "--after", "2")
    assert "--after 3" in result.stderr
    assert "input: {}" in result.stdout
    assert api.asked[0].query == {"tools": "true", "after": "2", "limit": "1"}


def test_the_prompt_is_shown_with_its_parts(spawnlog: Command, api: RecordedApi) -> None:
    prompt = {
        "systemPrompt": "You are näive.\n",
        "message": "Count.",
        "parts": [{"of": "message", "source": "task", "start": 0, "end": 6, "sha256": "abc"}],
    }
    api.on("GET", f"/v1/runs/{FIRST}/prompt", Reply(prompt))
    stdout = spawnlog("run", "prompt", FIRST).stdout
    assert "=== system prompt (16 bytes) ===\nYou are näive.\n" in stdout
    assert "=== message (6 bytes) ===\nCount.\n" in stdout
    assert stdout.splitlines()[-1].split() == ["message", "task", "0", "6", "abc"]


def test_a_prompt_that_is_not_there_yet_exits_with_2(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{FIRST}/prompt", problem(409, detail="the run has not started"))
    result = spawnlog("run", "prompt", FIRST)
    assert result.exit_code == 2
    assert result.stderr == "error: the run has not started\n"


def test_a_stop_by_full_id_asks_nothing(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, status="stopped")))
    result = spawnlog("run", "stop", FIRST, "--reason", "enough")
    assert result.exit_code == 0
    assert api.asked[0].body == {"reason": "enough"}
    assert len(api.asked[0].headers["idempotency-key"]) == 36
    assert result.stdout == f"run {FIRST} is stopped\n"


def test_a_stop_by_place_needs_a_yes_where_nobody_can_be_asked(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST)))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, status="stopped")))
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    refused = spawnlog("run", "stop", "last")
    assert refused.exit_code == 2
    assert FIRST in refused.stderr
    assert not [asked for asked in api.asked if asked.method == "POST"]
    assert spawnlog("run", "stop", "last", "--yes").exit_code == 0
    assert [asked.path for asked in api.asked if asked.method == "POST"] == [
        f"/v1/runs/{FIRST}/stop"
    ]


def test_a_stop_by_unique_label_asks_nothing(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/runs", listed(run_of(FIRST, label="harbour")))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, stage="ended", status="stopped")))
    api.on("POST", f"/v1/runs/{FIRST}/stop", Reply({}))
    assert spawnlog("run", "stop", "harbour").exit_code == 0


def test_what_cannot_be_removed_is_told_with_its_place_and_why(
    spawnlog: Command, api: RecordedApi
) -> None:
    step = {
        "step": "attachments",
        "root": "/srv/work",
        "relative": ".openclaw/attachments/x",
        "failures": 3,
        "nextAttemptAt": "2026-03-01T09:30:00.125Z",
        "error": "Permission denied\x1b",
    }
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST, undoing=[step])))
    result = spawnlog("run", "get", FIRST)
    assert (
        "to undo  attachments, .openclaw/attachments/x of /srv/work, failed 3 time(s),"
        " next attempt 2026-03-01 09:30:00.125: Permission denied\\x1b\n"
    ) in result.stdout
