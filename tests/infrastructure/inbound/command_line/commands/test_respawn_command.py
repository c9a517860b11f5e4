"""`spawnlog run respawn` against a server, and lineage where runs are shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply, problem

PATH = f"/v1/runs/{FIRST}/respawn"
TAKEN: dict[str, Any] = {
    "status": "accepted",
    "runId": SECOND,
    "childSessionKey": KEY,
    "sessionId": "33333333-0000-4000-8000-000000000003",
    "label": "again",
    "mode": "run",
    "modelApplied": False,
    "warnings": ["thinking is not used"],
}
ACCEPTED = Reply(TAKEN, status=201)


def test_a_run_is_respawned_as_it_was(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, ACCEPTED)
    result = spawnlog("run", "respawn", FIRST)
    assert result.exit_code == 0
    assert [asked.path for asked in api.asked] == [PATH]
    assert api.asked[0].body == {}
    assert len(api.asked[0].headers["idempotency-key"]) == 36
    assert SECOND in result.stdout
    assert f"respawned from  {FIRST}" in result.stdout
    assert "the model that was asked for is not used" in result.stdout


def test_what_is_given_is_changed(spawnlog: Command, api: RecordedApi, tmp_path: Path) -> None:
    api.on("POST", PATH, ACCEPTED)
    notes = tmp_path / "notes.txt"
    notes.write_text("ebb")
    options = ["--task", "-", "--agent", "scout", "--label", "again", "--model", "large/one"]
    options += ["--timeout", "0", "--cleanup", "delete", "--shared", '{"goal": 1}']
    options += ["--requester", "agent:main:b", "--attach", str(notes), "--scripts", "recorded"]
    options += ["--up-to", "4", "--config-revision", "3", "-o", "json"]
    options += ["--set", "context=null", "--set", 'requester.to="C1"', "--set", "label=null"]
    result = spawnlog("run", "respawn", FIRST, *options, given="from\nstdin")
    assert result.exit_code == 0, result.stderr
    assert api.asked[0].body == {
        "changes": {
            "task": "from\nstdin",
            "agentId": "scout",
            "label": None,
            "model": "large/one",
            "runTimeoutSeconds": 0,
            "cleanup": "delete",
            "sharedContext": {"goal": 1},
            "requester": {"sessionKey": "agent:main:b", "to": "C1"},
            "attachments": [{"name": "notes.txt", "content": "ebb", "encoding": "utf8"}],
            "context": None,
        },
        "scripts": "recorded",
        "transcript": {"upTo": 4},
        "configRevision": 3,
    }
    assert json.loads(result.stdout) == {**TAKEN, "respawnedFrom": FIRST}


@pytest.mark.parametrize("given", ["label", "label=two", "=1", "la bel=1", "a.b.c=1", "x=NaN"])
def test_a_field_that_is_none_is_told_of(spawnlog: Command, api: RecordedApi, given: str) -> None:
    result = spawnlog("run", "respawn", FIRST, "--set", given)
    assert result.exit_code == 2
    assert "--set" in result.stderr
    assert not api.asked


def test_waiting_shows_the_result_of_the_new_run(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, ACCEPTED)
    api.on("GET", f"/v1/runs/{SECOND}", Reply(run_of(SECOND, resultText="the second")))
    result = spawnlog("run", "respawn", FIRST, "--wait")
    assert (result.exit_code, result.stdout) == (0, "the second\n")


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (403, "spawn_forbidden", 3),
        (409, "cannot_respawn", 3),
        (410, "erased", 2),
        (404, "not_found", 4),
    ],
)
def test_a_refusal_says_why(
    spawnlog: Command, api: RecordedApi, status: int, code: str, exit_code: int
) -> None:
    api.on("POST", PATH, problem(status, code=code, detail="so it is"))
    result = spawnlog("run", "respawn", FIRST)
    assert result.exit_code == exit_code
    assert "so it is" in result.stderr


def test_lineage_is_shown_in_lists_and_on_both_runs(spawnlog: Command, api: RecordedApi) -> None:
    made = run_of(SECOND, respawnedFrom=FIRST, respawns=[])
    first = run_of(FIRST, respawnedFrom=None, respawns=[SECOND])
    api.on("GET", "/v1/runs", listed(first), listed(made, first))
    shown = spawnlog("run", "list", "--respawned-from", "last").stdout
    assert api.asked[-1].query["respawnedFrom"] == FIRST
    assert "RESPAWNED FROM" in shown
    api.on("GET", f"/v1/runs/{FIRST}", Reply(first))
    api.on("GET", f"/v1/runs/{SECOND}", Reply(made))
    assert f"respawned as  {SECOND}" in spawnlog("run", "get", FIRST).stdout
    assert f"respawned from  {FIRST}" in spawnlog("run", "get", SECOND).stdout
