"""`spawnlog subagents`: what is asked of the server, and what is answered."""

import re
from datetime import UTC, datetime

import pytest

from infrastructure.inbound.command_line.client.arguments import session_named
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"
NEXT = "22222222-0000-4000-8000-000000000002"
KEY = "agent:counter:subagent:1"
AT_WORK = {
    "runId": RUN,
    "childSessionKey": KEY,
    "stage": "started",
    "status": "running",
    "label": "tides",
    "startedAt": "2026-03-01T09:00:00Z",
}


@pytest.fixture
def known(api: RecordedApi) -> RecordedApi:
    api.on("GET", "/v1/runs", Reply({"items": [AT_WORK]}))
    api.on("GET", f"/v1/runs/{RUN}", Reply(AT_WORK))
    return api


def test_the_list_is_that_of_the_session(spawnlog: Command, known: RecordedApi) -> None:
    listed = spawnlog("subagents", "list", "--requester", "agent:main:x")
    assert re.fullmatch(r"1\. tides \(\d+d\S*\) running", listed.stdout.splitlines()[2])
    assert known.asked[0].query["requester"] == "agent:main:x"


def test_a10_a_message_is_answered_with_the_new_text_or_waits(
    spawnlog: Command, known: RecordedApi
) -> None:
    path = f"/v1/runs/{RUN}/messages"
    done = {"runId": NEXT, "stage": "announced", "outcome": "success", "resultText": "low at six"}
    known.on("POST", path, Reply({"status": "accepted", "runId": NEXT}, 201))
    known.on("GET", f"/v1/runs/{NEXT}", Reply(done))
    assert spawnlog("subagents", "send", "1", "and now?").stdout == "low at six\n"
    known.on("GET", f"/v1/runs/{NEXT}", Reply({**done, "outcome": "error", "error": "it broke"}))
    failed = spawnlog("subagents", "send", "tides", "and now?").stdout
    assert failed == "⚠️ Subagent error: it broke (run 22222222).\n"
    known.on("POST", path, Reply({"status": "queued", "runId": NEXT}, 202))
    waits = spawnlog("subagents", "send", "last", "and now?").stdout
    assert waits == "✅ Sent to tides (run 22222222).\n"


def test_a_steer_that_is_turned_away_says_why(spawnlog: Command, known: RecordedApi) -> None:
    text = "Steer rate limit exceeded."
    refused = problem(429, code="steered_too_soon", detail=text, retryable=True)
    known.on("POST", f"/v1/runs/{RUN}/messages", refused)
    result = spawnlog("subagents", "steer", "1", "stop that")
    assert result.exit_code != 0
    assert "send failed: Steer rate limit exceeded." in result.stderr


def test_a_stop_says_nothing(spawnlog: Command, known: RecordedApi) -> None:
    known.on("POST", f"/v1/runs/{RUN}/stop", Reply({"runId": RUN, "wasOver": False}))
    stopped = {**AT_WORK, "stage": "ended", "status": "stopped", "outcome": "stopped"}
    known.on("GET", f"/v1/runs/{RUN}", Reply(stopped))
    for target in ("1", "all"):
        result = spawnlog("subagents", "stop", target)
        assert (result.exit_code, result.stdout) == (0, "")
    assert len([one for one in known.asked if one.path.endswith("/stop")]) == 2


def test_whom_nobody_knows_is_not_found(spawnlog: Command, known: RecordedApi) -> None:
    result = spawnlog("subagents", "info", "9")
    assert (result.exit_code, result.stderr) == (4, "error: Invalid subagent index: 9\n")
    assert spawnlog("subagents", "log", "1", "5", "everything").exit_code == 2


def test_me_is_the_session_of_the_environment_or_the_main_one(
    spawnlog: Command, known: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawnlog("run", "list", "--requester", "me")
    assert known.asked[-1].query["requester"] == "main"
    monkeypatch.setenv("SPAWNLOG_SESSION_KEY", KEY)
    assert [session_named(one) for one in ("me", "other")] == [KEY, "other"]


def test_stopped_run_is_killed_and_not_failed(spawnlog: Command, api: RecordedApi) -> None:
    ended = {"stage": "announced", "outcome": "stopped", "runtimeMs": 1000}
    now = datetime.now(UTC).isoformat()
    api.on("GET", "/v1/runs", Reply({"items": [{**AT_WORK, **ended, "endedAt": now}]}))
    assert "1. tides (1s) killed" in spawnlog("subagents", "list").stdout
