"""`spawnlog run events`, `log` and `prompt` against a server."""

from typing import Any

from tests.support.builders.api_runs import FIRST, SECOND, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem


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
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    result = spawnlog("run", "log", FIRST, "--after", "0")
    assert "[60] 09:30:00.000 message assistant" in result.stdout
    assert "    line 60\\x1b[1m" in result.stdout
    assert "\x1b" not in result.stdout
    assert "tools" not in api.asked[0].query
    assert "continues" not in result.stderr


def test_without_a_place_to_begin_at_the_last_entries_are_shown(
    spawnlog: Command, api: RecordedApi
) -> None:
    entry = {"sequence": 9, "recordedAt": None, "kind": "text", "body": {"text": "the end"}}
    api.on("GET", f"/v1/runs/{FIRST}/transcript", Reply({"items": [entry], "nextAfter": None}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
    assert "the end" in spawnlog("run", "log", FIRST, "--limit", "3").stdout
    assert api.asked[0].query == {"last": "3"}


def test_a_transcript_says_which_run_was_before_it(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{SECOND}/transcript", Reply({"items": [], "nextAfter": None}))
    api.on("GET", f"/v1/runs/{SECOND}", Reply(run_of(SECOND, continues=FIRST)))
    result = spawnlog("run", "log", SECOND)
    assert f"this run continues run {FIRST}, which has a transcript of its own" in result.stderr


def test_a_cut_transcript_tells_how_to_go_on(spawnlog: Command, api: RecordedApi) -> None:
    entry = {"sequence": 3, "recordedAt": None, "kind": "tool", "body": {"name": "t", "input": {}}}
    api.on("GET", f"/v1/runs/{FIRST}/transcript", Reply({"items": [entry], "nextAfter": 3}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(run_of(FIRST)))
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


def test_prompt_of_unstarted_run_exits_with_3(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", f"/v1/runs/{FIRST}/prompt", problem(409, detail="the run has not started"))
    result = spawnlog("run", "prompt", FIRST)
    assert result.exit_code == 3
    assert result.stderr == "refused: the run has not started\n"
