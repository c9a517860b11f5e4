"""`spawnlog log head`: the head as `log verify --head` takes it, and what verifications found."""

import json
from typing import Any

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

HASH = "0f" * 32
HEAD: dict[str, Any] = {
    "logId": "11111111-0000-4000-8000-000000000001",
    "position": 30,
    "recordedAt": "2026-03-01T09:30:00.000Z",
    "chainHash": HASH,
    "verifications": [],
}


def verification(state: str, **more: Any) -> dict[str, Any]:
    return {
        **{"state": state, "startedBy": "admin", "origin": "server", "process": "one:7"},
        **{"startedAt": "2026-03-01T09:30:00Z", "endedAt": "2026-03-01T09:30:02.500Z"},
        **{"checked": 30, "last": 30, "difference": None, "failure": None},
        **{"stopRequestedBy": None},
        **more,
    }


def test_the_head_is_as_it_is_noted_and_given_back(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", "/v1/log", Reply(HEAD))
    result = spawnlog("log", "head", "--at", "pos:30")
    assert api.asked[0].query == {"at": "pos:30"}
    assert f"30:{HASH}" in result.stdout
    assert "spawnlog log verify" in result.stderr
    assert json.loads(spawnlog("log", "head", "-o", "json").stdout) == HEAD


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (verification("right"), "+2.500s admin server one:7 right 30 of 30"),
        (
            verification("running", endedAt=None, checked=0, last=None),
            "admin server one:7 running 0 of ?",
        ),
        (
            verification("different", checked=20, difference={"position": 21, "text": "changed"}),
            "+2.500s admin server one:7 different 20 of 30 position 21: changed",
        ),
        (
            verification("stopped", stopRequestedBy="ops"),
            "+2.500s admin server one:7 stopped 30 of 30 stopped by ops",
        ),
        (
            verification("failed", failure="the disk is \x1b[2J full"),
            r"+2.500s admin server one:7 failed 30 of 30 the disk is \x1b[2J full",
        ),
    ],
)
def test_a_verification_is_a_row_with_what_it_found(
    spawnlog: Command, api: RecordedApi, one: dict[str, Any], shown: str
) -> None:
    api.on("GET", "/v1/log", Reply({**HEAD, "verifications": [one]}))
    last = spawnlog("log", "head").stdout.splitlines()[-1]
    assert " ".join(last.split()) == f"2026-03-01 09:30:00.000 {shown}"
