"""`spawnlog spawn` against a server."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

RUN = "11111111-0000-4000-8000-000000000001"
ACCEPTED = Reply(
    {
        "status": "accepted",
        "runs": [{"runId": RUN}],
        "runId": RUN,
        "childSessionKey": "agent:counter:subagent:x",
        "label": "harbour",
        "mode": "run",
        "modelApplied": False,
        "warnings": ["thinking is not used"],
    },
    status=201,
)
REFUSED = problem(
    403,
    code="spawn_forbidden",
    detail="sessions_spawn has reached max active children for this session (5/5)",
    rule="active_children",
    runId=RUN,
)


def ended(**members: Any) -> Reply:
    return Reply(
        {
            "runId": RUN,
            "stage": "announced",
            "status": "done",
            "outcome": "success",
            "resultText": "12 words",
            "runtimeMs": 1200,
            **members,
        }
    )


def test_what_was_given_is_asked_for_and_nothing_else(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    result = spawnlog("spawn", "Count the words")
    assert result.exit_code == 0
    assert api.asked[0].body == {"requester": {"sessionKey": "main"}, "task": "Count the words"}
    assert RUN in result.stdout
    assert "thinking is not used" in result.stdout


def test_each_option_has_its_member(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    options = [
        *["--requester", "agent:main:main", "--agent", "counter", "--label", "harbour"],
        *["--model", "example/words", "--thinking", "high", "--timeout", "30"],
        *["--cleanup", "delete", "--idempotency-key", "key-1"],
    ]
    assert spawnlog("spawn", "-", *options, given="from\nstdin").exit_code == 0
    assert api.asked[0].body == {
        "requester": {"sessionKey": "agent:main:main"},
        "task": "from\nstdin",
        "agentId": "counter",
        "label": "harbour",
        "model": "example/words",
        "thinking": "high",
        "runTimeoutSeconds": 30,
        "cleanup": "delete",
    }
    assert api.asked[0].headers["idempotency-key"] == "key-1"


def test_a_refusal_exits_with_3_and_tells_rule_and_text(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("POST", "/v1/spawns", REFUSED)
    result = spawnlog("spawn", "One more")
    assert result.exit_code == 3
    assert result.stderr.startswith("refused: sessions_spawn has reached max active children")
    assert "rule: active_children" in result.stderr
    assert result.stdout == ""


def test_a_program_gets_the_refusal_as_json(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", REFUSED)
    result = spawnlog("spawn", "One more", "--output", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["rule"] == "active_children"


def test_an_invalid_request_exits_with_2(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", problem(422, code="invalid_request", detail="task required"))
    assert spawnlog("spawn", " ").exit_code == 2


def test_a_negative_timeout_is_not_even_asked_for(spawnlog: Command, api: RecordedApi) -> None:
    assert spawnlog("spawn", "x", "--timeout", "-1").exit_code == 2
    assert api.asked == []


@pytest.mark.server
def test_waiting_goes_on_until_the_run_is_announced(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{RUN}", ended(stage="started"), ended(stage="ended"), ended())
    result = spawnlog("spawn", "Count", "--wait")
    assert result.exit_code == 0
    assert result.stdout == "12 words\n"
    assert "done after 1.2s" in result.stderr
    assert api.asked[1].query == {"wait": "30s", "until": "announced"}
    waits = [asked for asked in api.asked if asked.path == f"/v1/runs/{RUN}"]
    assert len(waits) == 3


def test_a_run_that_failed_exits_with_1_and_tells_the_error(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    failed = ended(status="failed", outcome="error", resultText=None, error="the harbour is closed")
    api.on("GET", f"/v1/runs/{RUN}", failed)
    result = spawnlog("spawn", "Open", "--wait")
    assert result.exit_code == 1
    assert result.stdout == "(not available)\n"
    assert "the harbour is closed" in result.stderr


WARNED = {"text": "warning: 1 line of the output is no entry", "source": "warning"}
STDERR = {"text": "standard error:\nmodel not found", "source": "stderr"}


@pytest.mark.parametrize(
    ("result", "shown", "hidden"),
    [(None, ["(not available)", "model not found"], []), ("12 words", ["12 words"], ["model"])],
)
def test_waiting_shows_notes_on_output(
    spawnlog: Command, api: RecordedApi, result: str | None, shown: list[str], hidden: list[str]
) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{RUN}", ended(resultText=result))
    entries = [{"sequence": 3, "kind": "progress", "body": body} for body in (WARNED, STDERR)]
    api.on("GET", f"/v1/runs/{RUN}/transcript", Reply({"items": entries, "nextAfter": None}))
    told = spawnlog("spawn", "Count", "--wait")
    assert told.exit_code == 0
    assert api.asked[-1].query == {"last": "2"}
    assert "warning: 1 line of the output is no entry" in told.output
    assert all(word in told.output for word in shown)
    assert not any(word in told.output for word in hidden)


def test_a_program_that_waits_gets_the_whole_run(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{RUN}", ended(stage="archived", outcome="timeout", status="timeout"))
    result = spawnlog("spawn", "Count", "--wait", "-o", "jsonl")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["outcome"] == "timeout"


def test_a_result_cannot_steer_the_terminal(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{RUN}", ended(resultText="done\x1b]52;c;eA==\x07\nok"))
    assert spawnlog("spawn", "Count", "--wait").stdout == "done\\x1b]52;c;eA==\\x07\nok\n"


@pytest.mark.server
def test_a_wait_survives_a_server_that_is_away(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    lost = Reply("{", break_off=True)
    api.on("GET", f"/v1/runs/{RUN}", lost, problem(503, detail="not ready"), ended())
    assert spawnlog("spawn", "Count", "--wait").exit_code == 0


def test_a_lost_answer_tells_the_key_that_finds_out(spawnlog: Command, api: RecordedApi) -> None:
    keys = []

    def lost(asked: Asked) -> Reply:
        keys.append(asked.headers["idempotency-key"])
        return Reply("", break_off=True)

    api.on("POST", "/v1/spawns", lost)
    result = spawnlog("spawn", "Count")
    assert result.exit_code == 5
    assert f"--idempotency-key {keys[0]}" in result.stderr


def test_a_key_that_no_header_can_hold_is_refused(spawnlog: Command, api: RecordedApi) -> None:
    for key in ("x" * 256, "a\nb", "ä"):
        assert spawnlog("spawn", "Count", "--idempotency-key", key).exit_code == 2
    assert api.asked == []


def test_half_a_character_in_a_task_is_for_the_server_to_refuse(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("POST", "/v1/spawns", problem(422, code="invalid_request", detail="not Unicode"))
    assert spawnlog("spawn", "caf\udce9").exit_code == 2
    assert api.asked[0].body["task"] == "caf\udce9"


def test_what_a_run_waits_for_is_shown(spawnlog: Command, api: RecordedApi) -> None:
    others = [
        {"runId": RUN, "name": "scout", "require": "ended", "state": "waiting"},
        {"runId": RUN, "name": RUN, "require": "success", "state": "met"},
    ]
    api.on("GET", f"/v1/runs/{RUN}", ended(status="waiting", dependsOn=others))
    result = spawnlog("run", "get", RUN)
    assert result.exit_code == 0, result.stderr
    assert f"scout (run {RUN}), however it ends, waiting" in " ".join(result.stdout.split())
    assert f"run {RUN}, met" in result.stdout


def test_a_whole_request_comes_from_a_file_and_options_count_more(
    spawnlog: Command, api: RecordedApi, tmp_path: Path
) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    file = tmp_path / "request.json"
    asked = {"requester": {"sessionKey": "agent:a:main"}, "task": "Count", "label": "one"}
    file.write_text(json.dumps(asked), "utf-8")
    assert spawnlog("spawn", "--file", str(file), "--label", "two", "--to", "42").exit_code == 0
    requester = {"sessionKey": "agent:a:main", "to": "42"}
    assert api.asked[0].body == {"requester": requester, "task": "Count", "label": "two"}
    file.write_text("[]", "utf-8")
    wrong = spawnlog("spawn", "--file", str(file))
    assert wrong.exit_code == 2
    assert 'is no JSON object, such as {"task": ' in wrong.stderr


def test_the_result_of_one_that_yields_is_that_of_the_run_in_its_place(
    spawnlog: Command, api: RecordedApi
) -> None:
    last = "22222222-0000-4000-8000-000000000002"
    skipped = {"announcement": {"state": "skipped"}, "continuedBy": last, "resultText": "waits"}
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{RUN}", ended(**skipped))
    api.on("GET", f"/v1/runs/{last}", ended(runId=last, resultText="all of it"))
    result = spawnlog("spawn", "Count", "--wait")
    assert result.exit_code == 0
    assert result.stdout == "all of it\n"
    assert f"run {last} goes on in its place" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["spawn", "Count"],
        ["run", "send", RUN, "Go on"],
        ["run", "steer", RUN, "Go on"],
        ["run", "respawn", RUN],
    ],
)
def test_refused_connection_did_nothing(spawnlog: Command, command: list[str]) -> None:
    told = spawnlog(*command, "--url", "http://127.0.0.1:1")
    assert told.exit_code == 5
    assert "no server answers at http://127.0.0.1:1" in told.stderr
    assert "may have been" not in told.stderr
    assert "--idempotency-key" not in told.stderr
