"""`spawnlog run send` against a server."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.builders.api_runs import FIRST, KEY, SECOND, listed, run_of
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

PATH = f"/v1/runs/{FIRST}/messages"
TAKEN: dict[str, Any] = {
    "status": "accepted",
    "runId": SECOND,
    "continues": FIRST,
    "childSessionKey": KEY,
    "sessionId": "33333333-0000-4000-8000-000000000003",
    "modelApplied": False,
    "warnings": ["thinking is not used"],
}
ACCEPTED = Reply(TAKEN, status=201)


def answered(**members: Any) -> Reply:
    return Reply(run_of(SECOND, continues=FIRST, resultText="the second", **members))


def test_a_message_is_sent_and_the_new_run_is_told(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, ACCEPTED)
    result = spawnlog("run", "send", FIRST, "And the second chapter?")
    assert result.exit_code == 0
    assert [asked.path for asked in api.asked] == [PATH]
    assert api.asked[0].body == {"message": "And the second chapter?"}
    assert len(api.asked[0].headers["idempotency-key"]) == 36
    assert f"run        {SECOND}" in result.stdout
    assert f"continues  {FIRST}" in result.stdout
    assert "thinking is not used" in result.stdout
    assert "the model that was asked for is not used" in result.stdout


def test_a_message_may_come_from_standard_input(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, ACCEPTED)
    options = ["--idempotency-key", "key-1", "-o", "json"]
    result = spawnlog("run", "send", FIRST, "-", *options, given="from\nstdin")
    assert api.asked[0].body == {"message": "from\nstdin"}
    assert api.asked[0].headers["idempotency-key"] == "key-1"
    assert json.loads(result.stdout) == TAKEN


def test_empty_idempotency_key_is_refused(spawnlog: Command, api: RecordedApi) -> None:
    result = spawnlog("run", "send", FIRST, "go on", "--idempotency-key", "")
    assert (result.exit_code, api.asked) == (2, [])
    assert "give one, or leave it out" in result.stderr


def test_a_child_is_named_by_its_key_or_by_the_label_of_its_runs(
    spawnlog: Command, api: RecordedApi
) -> None:
    newest = run_of(FIRST, label="reader", continues=SECOND)
    api.on("GET", "/v1/runs", listed(newest, run_of(SECOND, label="reader")))
    api.on("POST", PATH, ACCEPTED)
    for name in ("reader", KEY):
        assert spawnlog("run", "send", name, "go on").exit_code == 0
        assert api.asked[-1].path == PATH


def test_waiting_shows_the_result_of_the_new_run(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, ACCEPTED)
    api.on("GET", f"/v1/runs/{SECOND}", answered())
    result = spawnlog("run", "send", FIRST, "go on", "--wait")
    assert (result.exit_code, result.stdout) == (0, "the second\n")
    assert api.asked[-2].query == {"wait": "30s", "until": "announced"}
    api.on("GET", f"/v1/runs/{SECOND}", answered(outcome="error", status="failed", error="no"))
    failed = spawnlog("run", "send", FIRST, "go on", "--wait")
    assert failed.exit_code == 1
    assert "ended as failed: no" in failed.stderr


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "spawn_forbidden"),
        (422, "spawn_error"),
        (409, "run_active"),
        (409, "session_closed"),
        (409, "no_session"),
    ],
)
def test_what_is_refused_exits_with_3(
    status: int, code: str, spawnlog: Command, api: RecordedApi
) -> None:
    api.on("POST", PATH, problem(status, code=code, detail="not now"))
    result = spawnlog("run", "send", FIRST, "go on")
    assert (result.exit_code, result.stderr, result.stdout) == (3, "refused: not now\n", "")
    told = spawnlog("run", "send", FIRST, "go on", "-o", "json")
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (3, code)


def test_what_cannot_be_sent_is_an_error(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", PATH, problem(422, code="invalid_request", detail="must say something"))
    assert spawnlog("run", "send", FIRST, " ").exit_code == 2
    assert spawnlog("run", "send", SECOND, "go on").exit_code == 4


def test_a_lost_answer_tells_the_key_that_finds_out(spawnlog: Command, api: RecordedApi) -> None:
    keys = []

    def lost(asked: Asked) -> Reply:
        keys.append(asked.headers["idempotency-key"])
        return Reply("", break_off=True)

    api.on("POST", PATH, lost)
    result = spawnlog("run", "send", FIRST, "go on")
    assert result.exit_code == 5
    assert "the message may have been taken or not" in result.stderr
    assert f"--idempotency-key {keys[0]}" in result.stderr


def test_a_message_that_waits_is_told_with_its_place(spawnlog: Command, api: RecordedApi) -> None:
    queued = {**TAKEN, "status": "queued", "place": 2}
    queued.pop("modelApplied")
    api.on("POST", PATH, Reply(queued, status=202))
    result = spawnlog("run", "send", FIRST, "and then?")
    assert result.exit_code == 0
    assert "status     queued" in result.stdout
    assert "place      2" in result.stdout


def test_a_message_that_was_dropped_is_not_waited_for(spawnlog: Command, api: RecordedApi) -> None:
    queued = {**TAKEN, "status": "queued", "place": 1}
    queued.pop("modelApplied")
    api.on("POST", PATH, Reply(queued, status=202))
    api.on("GET", f"/v1/sessions/{quote(KEY, safe='')}", Reply({"queue": []}))
    api.on("GET", f"/v1/runs/{SECOND}", problem(404, code="not_found", detail="no such run"))
    result = spawnlog("run", "send", FIRST, "and then?", "--wait")
    assert result.exit_code == 2
    assert "the message was dropped" in result.stderr


def test_a_run_is_steered(spawnlog: Command, api: RecordedApi) -> None:
    steered = {"status": "accepted", "runId": SECOND, "replaces": FIRST, "text": "steered it."}
    api.on("POST", PATH, Reply({**steered, "childSessionKey": KEY}, status=202))
    result = spawnlog("run", "steer", FIRST, "do this instead")
    assert api.asked[0].body == {"message": "do this instead", "mode": "steer"}
    assert result.exit_code == 0
    assert f"replaces  {FIRST}" in result.stdout
    assert "steered it." in result.stdout
