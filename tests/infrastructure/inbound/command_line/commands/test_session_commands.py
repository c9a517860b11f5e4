"""`spawnlog session stop`, and what `session get` shows of a session that goes on."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

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
