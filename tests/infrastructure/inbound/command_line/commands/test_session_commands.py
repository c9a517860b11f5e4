"""`spawnlog session …` and `subagents …` against a server."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from infrastructure.inbound.command_line.client.arguments import session_named
from tests.support.builders.api_runs import FIRST, KEY, SECOND, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

SESSION = "33333333-0000-4000-8000-000000000003"

PATH = f"/v1/sessions/{quote(KEY, safe='')}"

STOP = f"{PATH}/stop"


def session(**members: Any) -> dict[str, Any]:
    return {
        "sessionKey": KEY,
        "sessionId": SESSION,
        "stage": "open",
        "pendingDescendants": 2,
        "runs": [],
        "ownRuns": [
            {"runId": SECOND, "stage": "started", "continues": FIRST},
            {"runId": FIRST, "stage": "announced", "continues": None},
        ],
        **members,
    }


def stopped(**members: Any) -> Reply:
    plain = {"sessionKey": KEY, "sessionId": SESSION, "runId": SECOND, "wasOver": True}
    return Reply({**plain, "closed": True, **members})


@pytest.fixture
def open_session(api: RecordedApi) -> RecordedApi:
    api.on("GET", PATH, Reply(session()))
    api.on("GET", f"/v1/sessions/{SESSION}", Reply(session()))
    api.on("GET", "/v1/sessions/main", Reply(session()))
    api.on("POST", STOP, stopped())
    return api


def posts(api: RecordedApi) -> list[Any]:
    return [(asked.path, asked.body) for asked in api.asked if asked.method == "POST"]


def test_a_session_shows_its_own_runs_the_newest_first(
    spawnlog: Command, open_session: RecordedApi
) -> None:
    lines = spawnlog("session", "get", KEY).stdout.split("own runs:\n")[1].splitlines()
    assert [line.split() for line in lines] == [
        ["RUN", "STAGE", "CONTINUES"],
        [SECOND[:8], "started", FIRST[:8]],
        [FIRST[:8], "announced"],
    ]


@pytest.mark.parametrize("name", [KEY, SESSION])
def test_a_session_is_stopped_by_its_key_or_id_without_a_question(
    name: str, spawnlog: Command, open_session: RecordedApi
) -> None:
    result = spawnlog("session", "stop", name, "--reason", "enough")
    assert (result.exit_code, result.stdout) == (0, f"session {KEY} is closed\n")
    assert posts(open_session) == [(STOP, {"reason": "enough"})]


def test_another_spelling_needs_a_yes_where_nobody_can_be_asked(
    spawnlog: Command, open_session: RecordedApi
) -> None:
    refused = spawnlog("session", "stop", "main")
    assert refused.exit_code == 2
    assert f"{KEY} (open), with 2 below it" in refused.stderr
    assert posts(open_session) == []
    assert spawnlog("session", "stop", "main", "--yes").exit_code == 0
    assert posts(open_session) == [(STOP, {})]


def test_a_run_that_is_at_work_is_waited_for(spawnlog: Command, open_session: RecordedApi) -> None:
    open_session.on("POST", STOP, stopped(wasOver=False))
    open_session.on("GET", f"/v1/runs/{SECOND}", Reply(run_of(SECOND, status="stopped")))
    result = spawnlog("session", "stop", KEY)
    assert result.stdout == f"session {KEY} is closed\nrun {SECOND} is stopped\n"


def test_a_session_that_has_no_run_of_its_own_has_those_below_it_stopped(
    spawnlog: Command, open_session: RecordedApi
) -> None:
    open_session.on("POST", STOP, stopped(runId=None, closed=False))
    result = spawnlog("session", "stop", KEY)
    assert result.stdout == f"session {KEY}: all that it has spawned is asked to stop\n"
    open_session.on("GET", PATH, Reply(session(pendingDescendants=0)))
    assert spawnlog("session", "stop", KEY).stdout == f"session {KEY}: nothing is at work\n"


def test_a_program_gets_the_answer_of_the_server(
    spawnlog: Command, open_session: RecordedApi
) -> None:
    told = json.loads(spawnlog("session", "stop", KEY, "-o", "json").stdout)
    assert (told["runId"], told["closed"]) == (SECOND, True)


def test_a_session_that_is_not_there_exits_with_4(spawnlog: Command, api: RecordedApi) -> None:
    assert spawnlog("session", "stop", KEY).exit_code == 4


CONTEXT = f"/v1/sessions/{quote(KEY, safe='')}/shared-context"


def context(**members: Any) -> dict[str, Any]:
    return {
        "sessionKey": KEY,
        "version": 52,
        "position": 60,
        "values": {"goal": "a web app", "notes": {"long\x1b[2J": [1, None]}},
        "sources": {
            "goal": {"kind": "literal", "position": 40, "runId": FIRST, "by": None},
            "notes": {"kind": "literal", "position": 52, "runId": None, "by": "admin"},
        },
        "history": [
            {
                "position": 40,
                "recordedAt": None,
                "cause": "spawn",
                "runId": FIRST,
                "keys": ["goal"],
            },
            {
                "position": 52,
                "recordedAt": "2026-03-01T09:30:00.125Z",
                "cause": "patch",
                "by": "admin",
                "keys": ["notes", "gone"],
            },
        ],
        "startedWith": [{"runId": SECOND, "position": 55, "version": 52, "label": "reader"}],
        **members,
    }


@pytest.fixture
def shared(api: RecordedApi) -> RecordedApi:
    api.on("GET", CONTEXT, Reply(context()))
    return api


def words_of(text: str, heading: str) -> list[list[str]]:
    return [line.split() for line in text.split(f"{heading}:\n")[1].split("\n\n")[0].splitlines()]


def test_it_shows_the_values_who_wrote_them_and_who_started_with_which(
    spawnlog: Command, shared: RecordedApi
) -> None:
    result = spawnlog("session", "context", KEY)
    assert result.exit_code == 0
    said = result.stdout
    assert [line.split() for line in said.splitlines()[:3]] == [
        ["session", KEY],
        ["version", "52"],
        ["position", "60"],
    ]
    assert words_of(said, "shared") == [
        ["KEY", "VALUE", "WRITTEN", "BY", "POSITION"],
        ["goal", '"a', "web", 'app"', "run", FIRST[:8], "40"],
        ["notes", r'{"long\u001b[2J":[1,null]}', "admin", "52"],
    ]
    assert words_of(said, "written, the last")[2] == [
        *["52", "2026-03-01", "09:30:00.125", "patch", "admin", "notes,", "gone"],
    ]
    assert words_of(said, "started with, the last")[1] == [SECOND[:8], "52", "55", "reader"]
    assert "\x1b" not in said


def test_the_last_of_many_are_shown(spawnlog: Command, api: RecordedApi) -> None:
    many = [{"runId": SECOND, "version": n, "position": n, "label": "x"} for n in range(50)]
    api.on("GET", CONTEXT, Reply(context(startedWith=many)))
    shown = words_of(spawnlog("session", "context", KEY).stdout, "started with, the last")
    assert [line[1] for line in shown[1:]] == [str(n) for n in range(30, 50)]


def test_a_session_that_shares_nothing_says_so_by_its_version(
    spawnlog: Command, api: RecordedApi
) -> None:
    empty: dict[str, Any] = {"values": {}, "sources": {}, "history": [], "startedWith": []}
    api.on("GET", CONTEXT, Reply(context(version=0, **empty)))
    said = spawnlog("session", "context", KEY).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["session", "version", "position"]


CHILD = "agent:counter:subagent:1"

AT_WORK = {
    "runId": FIRST,
    "childSessionKey": CHILD,
    "stage": "started",
    "status": "running",
    "label": "tides",
    "startedAt": "2026-03-01T09:00:00Z",
}


@pytest.fixture
def known(api: RecordedApi) -> RecordedApi:
    api.on("GET", "/v1/runs", Reply({"items": [AT_WORK]}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(AT_WORK))
    return api


def test_the_list_is_that_of_the_session(spawnlog: Command, known: RecordedApi) -> None:
    listed = spawnlog("subagents", "list", "--requester", "agent:main:x")
    assert re.fullmatch(r"1\. tides \(\d+d\S*\) running", listed.stdout.splitlines()[2])
    assert known.asked[0].query["requester"] == "agent:main:x"


def test_a10_a_message_is_answered_with_the_new_text_or_waits(
    spawnlog: Command, known: RecordedApi
) -> None:
    path = f"/v1/runs/{FIRST}/messages"
    done = {"runId": SECOND, "stage": "announced", "outcome": "success", "resultText": "low at six"}
    known.on("POST", path, Reply({"status": "accepted", "runId": SECOND}, 201))
    known.on("GET", f"/v1/runs/{SECOND}", Reply(done))
    assert spawnlog("subagents", "send", "1", "and now?").stdout == "low at six\n"
    known.on("GET", f"/v1/runs/{SECOND}", Reply({**done, "outcome": "error", "error": "it broke"}))
    failed = spawnlog("subagents", "send", "tides", "and now?").stdout
    assert failed == "⚠️ Subagent error: it broke (run 22222222).\n"
    known.on("POST", path, Reply({"status": "queued", "runId": SECOND}, 202))
    waits = spawnlog("subagents", "send", "last", "and now?").stdout
    assert waits == "✅ Sent to tides (run 22222222).\n"


def test_a_steer_that_is_turned_away_says_why(spawnlog: Command, known: RecordedApi) -> None:
    text = "Steer rate limit exceeded."
    refused = problem(429, code="steered_too_soon", detail=text, retryable=True)
    known.on("POST", f"/v1/runs/{FIRST}/messages", refused)
    result = spawnlog("subagents", "steer", "1", "stop that")
    assert result.exit_code != 0
    assert "send failed: Steer rate limit exceeded." in result.stderr


def test_a_stop_says_nothing(spawnlog: Command, known: RecordedApi) -> None:
    known.on("POST", f"/v1/runs/{FIRST}/stop", Reply({"runId": FIRST, "wasOver": False}))
    stopped = {**AT_WORK, "stage": "ended", "status": "stopped", "outcome": "stopped"}
    known.on("GET", f"/v1/runs/{FIRST}", Reply(stopped))
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
    monkeypatch.setenv("SPAWNLOG_SESSION_KEY", CHILD)
    assert [session_named(one) for one in ("me", "other")] == [CHILD, "other"]


def test_stopped_run_is_killed_and_not_failed(spawnlog: Command, api: RecordedApi) -> None:
    ended = {"stage": "announced", "outcome": "stopped", "runtimeMs": 1000}
    now = datetime.now(UTC).isoformat()
    api.on("GET", "/v1/runs", Reply({"items": [{**AT_WORK, **ended, "endedAt": now}]}))
    assert "1. tides (1s) killed" in spawnlog("subagents", "list").stdout
