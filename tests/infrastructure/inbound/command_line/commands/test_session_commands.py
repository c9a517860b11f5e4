"""`spawnlog session …` and `subagents …` against a server."""

import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from infrastructure.inbound.command_line.client.arguments import session_named
from infrastructure.inbound.command_line.commands.run import stop
from tests.support.builders.api_runs import FIRST, KEY, SECOND, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

SESSION = "33333333-0000-4000-8000-000000000003"
PATH = f"/v1/sessions/{quote(KEY, safe='')}"
STOP, CONTEXT = f"{PATH}/stop", f"{PATH}/shared-context"
CHILD = "agent:counter:subagent:1"
AT_WORK = {
    "runId": FIRST,
    "childSessionKey": CHILD,
    "stage": "started",
    "status": "running",
    "label": "tides",
    "startedAt": "2026-03-01T09:00:00Z",
}


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
    for name in (KEY, SESSION, "main"):
        api.on("GET", f"/v1/sessions/{quote(name, safe='')}", Reply(session()))
    api.on("POST", STOP, stopped())
    return api


def posts(api: RecordedApi) -> list[Any]:
    return [(request.path, request.body) for request in api.asked if request.method == "POST"]


def test_get_shows_newest_own_run_first(spawnlog: Command, open_session: RecordedApi) -> None:
    lines = spawnlog("session", "get", KEY).stdout.split("own runs:\n")[1].splitlines()
    assert [line.split() for line in lines] == [
        ["RUN", "STAGE", "CONTINUES"],
        [SECOND[:8], "started", FIRST[:8]],
        [FIRST[:8], "announced"],
    ]


@pytest.mark.parametrize("name", [KEY, SESSION])
def test_stop_by_key_or_id_asks_nothing(
    name: str, spawnlog: Command, open_session: RecordedApi
) -> None:
    result = spawnlog("session", "stop", name, "--reason", "enough")
    assert (result.exit_code, result.stdout) == (0, f"session {KEY} is closed\n")
    assert posts(open_session) == [(STOP, {"reason": "enough"})]


def test_stop_by_alias_needs_yes(spawnlog: Command, open_session: RecordedApi) -> None:
    refused = spawnlog("session", "stop", "main")
    assert refused.exit_code == 2
    assert f"{KEY} (open), with 2 below it" in refused.stderr
    assert posts(open_session) == []
    assert spawnlog("session", "stop", "main", "--yes").exit_code == 0
    assert posts(open_session) == [(STOP, {})]


@pytest.mark.parametrize(
    ("answer", "descendants", "shown"),
    [
        ({"wasOver": False}, 2, f" is closed\nrun {SECOND} is stopped"),
        ({"runId": None, "closed": False}, 2, ": everything it has spawned is asked to stop"),
        ({"runId": None, "closed": False}, 0, ": nothing is active"),
    ],
)
def test_stop_shows_what_was_stopped(
    answer: dict[str, Any],
    descendants: int,
    shown: str,
    spawnlog: Command,
    open_session: RecordedApi,
) -> None:
    open_session.on("GET", PATH, Reply(session(pendingDescendants=descendants)))
    open_session.on("POST", STOP, stopped(**answer))
    open_session.on("GET", f"/v1/runs/{SECOND}", Reply(run_of(SECOND, status="stopped")))
    assert spawnlog("session", "stop", KEY).stdout == f"session {KEY}{shown}\n"


def test_stop_as_json_is_answer_of_server(spawnlog: Command, open_session: RecordedApi) -> None:
    answer = json.loads(spawnlog("session", "stop", KEY, "-o", "json").stdout)
    assert (answer["runId"], answer["closed"]) == (SECOND, True)


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
                **{"position": 52, "recordedAt": "2026-03-01T09:30:00.125Z", "cause": "patch"},
                **{"by": "admin", "keys": ["notes", "gone"]},
            },
        ],
        "startedWith": [{"runId": SECOND, "position": 55, "version": 52, "label": "reader"}],
        **members,
    }


def words_of(text: str, heading: str) -> list[list[str]]:
    return [line.split() for line in text.split(f"{heading}:\n")[1].split("\n\n")[0].splitlines()]


def test_context_shows_values_and_writers(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", CONTEXT, Reply(context()))
    result = spawnlog("session", "context", KEY)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert [line.split() for line in result.stdout.splitlines()[:3]] == [
        ["session", KEY],
        ["version", "52"],
        ["position", "60"],
    ]
    assert words_of(result.stdout, "shared") == [
        ["KEY", "VALUE", "WRITTEN", "BY", "POSITION"],
        ["goal", '"a', "web", 'app"', "run", FIRST[:8], "40"],
        ["notes", r'{"long\u001b[2J":[1,null]}', "admin", "52"],
    ]
    assert words_of(result.stdout, "last changes")[2] == [
        *["52", "2026-03-01", "09:30:00.125", "patch", "admin", "notes,", "gone"],
    ]
    started = words_of(result.stdout, "last started runs")
    assert started[1] == [SECOND[:8], "52", "55", "reader"]


def test_context_shows_newest_entries(spawnlog: Command, api: RecordedApi) -> None:
    many = [{"runId": SECOND, "version": n, "position": n, "label": "x"} for n in range(50)]
    empty: dict[str, Any] = {"values": {}, "sources": {}, "history": [], "startedWith": []}
    api.on("GET", CONTEXT, Reply(context(startedWith=many)), Reply(context(version=0, **empty)))
    shown = words_of(spawnlog("session", "context", KEY).stdout, "last started runs")
    assert [line[1] for line in shown[1:]] == [str(n) for n in range(30, 50)]
    nothing = spawnlog("session", "context", KEY).stdout.splitlines()
    assert [line.split()[0] for line in nothing] == ["session", "version", "position"]


@pytest.fixture
def known(api: RecordedApi) -> RecordedApi:
    api.on("GET", "/v1/runs", Reply({"items": [AT_WORK]}))
    api.on("GET", f"/v1/runs/{FIRST}", Reply(AT_WORK))
    return api


def test_list_is_of_requester(spawnlog: Command, known: RecordedApi) -> None:
    listed = spawnlog("subagents", "list", "--requester", "agent:main:x")
    assert re.fullmatch(r"1\. tides \(\d+d\S*\) running", listed.stdout.splitlines()[2])
    assert known.asked[0].query["requester"] == "agent:main:x"


def test_a10_send_shows_answer_or_waits(spawnlog: Command, known: RecordedApi) -> None:
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


def test_refused_steer_shows_reason(spawnlog: Command, known: RecordedApi) -> None:
    text = "Steer rate limit exceeded."
    refused = problem(429, code="steered_too_soon", detail=text, retryable=True)
    known.on("POST", f"/v1/runs/{FIRST}/messages", refused)
    result = spawnlog("subagents", "steer", "1", "stop that")
    assert result.exit_code != 0
    assert "send failed: Steer rate limit exceeded." in result.stderr


def test_subagents_stop_prints_nothing(spawnlog: Command, known: RecordedApi) -> None:
    known.on("POST", f"/v1/runs/{FIRST}/stop", Reply({"runId": FIRST, "wasOver": False}))
    stopped = {**AT_WORK, "stage": "ended", "status": "stopped", "outcome": "stopped"}
    known.on("GET", f"/v1/runs/{FIRST}", Reply(stopped))
    for target in ("1", "all"):
        result = spawnlog("subagents", "stop", target)
        assert (result.exit_code, result.stdout) == (0, "")
    assert len([request for request in known.asked if request.path.endswith("/stop")]) == 2


def test_subagents_stop_notes_run_still_running(
    spawnlog: Command, known: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "STOP_SECONDS_MAX", 0.05)
    known.on("POST", f"/v1/runs/{FIRST}/stop", Reply({"runId": FIRST, "wasOver": False}))
    for target in ("1", "all"):
        result = spawnlog("subagents", "stop", target)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "1 run is asked to stop, and still running\n"


def test_unknown_subagent_exits_4(spawnlog: Command, known: RecordedApi) -> None:
    result = spawnlog("subagents", "info", "9")
    assert (result.exit_code, result.stderr) == (4, "error: Invalid subagent index: 9\n")
    assert spawnlog("subagents", "log", "1", "5", "everything").exit_code == 2


def test_me_is_session_of_environment_or_main(
    spawnlog: Command, known: RecordedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawnlog("run", "list", "--requester", "me")
    assert known.asked[-1].query["requester"] == "main"
    monkeypatch.setenv("SPAWNLOG_SESSION_KEY", CHILD)
    assert [session_named(text) for text in ("me", "other")] == [CHILD, "other"]


def test_stopped_run_is_killed_and_not_failed(spawnlog: Command, api: RecordedApi) -> None:
    ended = {"stage": "announced", "outcome": "stopped", "runtimeMs": 1000}
    now = datetime.now(UTC).isoformat()
    api.on("GET", "/v1/runs", Reply({"items": [{**AT_WORK, **ended, "endedAt": now}]}))
    assert "1. tides (1s) killed" in spawnlog("subagents", "list").stdout
