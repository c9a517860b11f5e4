"""`spawnlog spawn --parallel` with several tasks, against a server."""

import json

import pytest

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

FIRST = "11111111-0000-4000-8000-000000000001"
SECOND = "22222222-0000-4000-8000-000000000002"
BATCH = "99999999-0000-4000-8000-000000000009"
ACCEPTED = Reply(
    {
        "status": "accepted",
        "batchId": BATCH,
        "runs": [
            {"runId": FIRST, "label": "tide-1", "childSessionKey": "agent:a:subagent:x"},
            {
                "runId": SECOND,
                "label": "tide-2",
                "childSessionKey": "agent:a:subagent:y",
                "warnings": ["thinking is not used"],
            },
        ],
    },
    status=201,
)
TWO = ("--parallel", "--task", "high water", "--task", "low water")


def ended(run_id: str, outcome: str = "success") -> Reply:
    words = {"success": "done", "error": "failed"}
    return Reply(
        {
            "runId": run_id,
            "stage": "announced",
            "status": words[outcome],
            "outcome": outcome,
            "resultText": f"the tide of {run_id[0]}",
            "error": None if outcome == "success" else "the harbour is closed",
        }
    )


def test_tasks_are_asked_for_as_a_list(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    result = spawnlog("spawn", *TWO, "--label", "tide")
    assert result.exit_code == 0
    assert api.asked[0].body == {
        "requester": {"sessionKey": "main"},
        "task": ["high water", "low water"],
        "parallel": True,
        "label": "tide",
    }
    for part in (BATCH, FIRST, SECOND, "tide-2", "thinking is not used"):
        assert part in result.stdout


def test_one_of_them_may_stand_by_itself(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    given = spawnlog("spawn", "-", "--parallel", "--task", "low water", given="from stdin")
    assert given.exit_code == 0
    body = api.asked[0].body
    assert isinstance(body, dict)
    assert body["task"] == ["from stdin", "low water"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what to do"),
        (("--parallel",), "say what to do"),
        (("--task", "low water"), "--parallel"),
        (("-", "--parallel", "--task", "-"), "standard input"),
    ],
)
def test_tasks_that_are_not_clear_are_not_asked_for(
    spawnlog: Command, api: RecordedApi, arguments: tuple[str, ...], said: str
) -> None:
    result = spawnlog("spawn", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert api.asked == []


def test_all_of_them_are_waited_for(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    api.on("GET", f"/v1/runs/{FIRST}", ended(FIRST, "error"))
    api.on("GET", f"/v1/runs/{SECOND}", ended(SECOND))
    result = spawnlog("spawn", *TWO, "--wait")
    assert result.exit_code == 1
    assert "the tide of 2" in result.stdout
    assert "the harbour is closed" in result.stderr


def test_as_json_it_is_what_the_server_says(spawnlog: Command, api: RecordedApi) -> None:
    api.on("POST", "/v1/spawns", ACCEPTED)
    shown = json.loads(spawnlog("spawn", *TWO, "--output", "json").stdout)
    assert [one["runId"] for one in shown["runs"]] == [FIRST, SECOND]
