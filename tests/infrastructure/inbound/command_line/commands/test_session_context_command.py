"""`spawnlog session context`: what a session shares, who wrote it, and who has which."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

PATH = f"/v1/sessions/{quote(KEY, safe='')}/shared-context"


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
    api.on("GET", PATH, Reply(context()))
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
    api.on("GET", PATH, Reply(context(startedWith=many)))
    shown = words_of(spawnlog("session", "context", KEY).stdout, "started with, the last")
    assert [line[1] for line in shown[1:]] == [str(n) for n in range(30, 50)]


def test_a_session_that_shares_nothing_says_so_by_its_version(
    spawnlog: Command, api: RecordedApi
) -> None:
    empty: dict[str, Any] = {"values": {}, "sources": {}, "history": [], "startedWith": []}
    api.on("GET", PATH, Reply(context(version=0, **empty)))
    said = spawnlog("session", "context", KEY).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["session", "version", "position"]
