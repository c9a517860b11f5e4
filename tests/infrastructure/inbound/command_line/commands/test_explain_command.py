"""`spawnlog run explain` against a server."""

from typing import Any

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"
PATH = f"/v1/runs/{RUN}/explain"


def rule(name: str, result: str, text: str) -> dict[str, Any]:
    return {
        "step": "admission",
        "rule": name,
        "result": result,
        "compared": {"callerDepth": 1} if result in ("passed", "refused") else None,
        "text": text,
        "position": 12,
        "configRevision": 3,
    }


def explanation(**changes: Any) -> dict[str, Any]:
    plain = {
        "runId": RUN,
        "stage": "refused",
        "configRevision": 3,
        "decisions": [
            rule("mode", "passed", 'mode "run" with thread false'),
            rule("depth", "refused", "depth 1 is not below maxSpawnDepth 1"),
            rule("active_children", "not_judged", '"depth" refused the spawn before'),
        ],
        "refused": {
            "rule": "depth",
            "status": "forbidden",
            "step": "admission",
            "text": "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
            "current": 1,
            "limit": 1,
        },
    }
    return plain | changes


def test_each_rule_is_a_line_with_what_came_of_it(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation()))
    result = spawnlog("run", "explain", RUN)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["RULE", "RESULT", "WHAT"]
    assert lines[1].split()[:2] == ["mode", "passed"]
    assert lines[2].endswith("refused     depth 1 is not below maxSpawnDepth 1")
    assert lines[3].split()[:3] == ["active_children", "not", "judged"]
    assert f"run {RUN}, refused, under configuration revision 3" in result.stderr


def test_a_refusal_is_told_in_the_words_of_its_caller(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation()))
    lines = spawnlog("run", "explain", RUN).stdout.splitlines()
    assert lines[-2:] == [
        "refused by rule depth (forbidden):",
        "sessions_spawn is not allowed at this depth (current depth: 1, max: 1)",
    ]


def test_a_run_that_was_not_refused_has_rules_alone(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", PATH, Reply(explanation(refused=None, stage="queued")))
    result = spawnlog("run", "explain", RUN)
    assert len(result.stdout.splitlines()) == 4
    assert "refused by" not in result.stdout
