"""`spawnlog script test`: real scripts, and neither a server nor a record."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders.launches import program
from tests.support.servers.command_line import Command

pytestmark = pytest.mark.server

IDENTITY = """#!/bin/sh
test "$SPAWNLOG_SCRIPT_TEST" = 1 || exit 9
case "$1" in
    who=steward) echo '{"message": "You are the steward.", "who": "main"}' ;;
esac
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    program(tmp_path / "identity.sh", IDENTITY)
    program(tmp_path / "tell.sh", "#!/bin/sh\nexec cat\n")
    program(tmp_path / "fails.sh", "#!/bin/sh\necho why >&2; exit 3\n")
    everything = {name: name for name in ("task", "label", "cleanup", "requesterSessionKey")}
    default = [
        {"id": "identity", "uri": "identity.sh", "position": "prepend", "priority": 2}
        | {"argMap": {"who": "targetAgentId"}, "agentIdOverrideKey": "who"},
        {"id": "tell", "uri": "tell.sh", "format": "json", "argMap": everything},
    ]
    failing = {"run": [{"id": "fails", "uri": "fails.sh"}], "ignore": ["tell"]}
    agents = {
        "defaults": {"subagents": {"contextScripts": {"run": default}}},
        "list": [{"id": "main"}, {"id": "poor", "subagents": {"contextScripts": failing}}],
    }
    path = tmp_path / "spawnlog.json5"
    path.write_text(json.dumps({"agents": agents}), "utf-8")
    return path


def answered(spawnlog: Command, file: Path, *arguments: str) -> dict[str, Any]:
    result = spawnlog("script", "test", *arguments, "--config", str(file), "--output", "json")
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_every_script_is_shown_with_its_place(spawnlog: Command, file: Path) -> None:
    more = ("--label", "l", "--requester", "agent:main:here", "--cleanup", "delete")
    result = answered(spawnlog, file, "Steward", "--task", "Review", *more)
    assert (result["agentId"], result["configured"], result["runsAs"]) == ("steward", False, "main")
    first, second = result["scripts"]
    assert (first["id"], first["outcome"], first["exitCode"]) == ("identity", "injected", 0)
    assert first["content"] == "You are the steward."
    assert first["candidate"] == "main"
    assert json.loads(first["output"])["who"] == "main"
    assert json.loads(second["output"]) == {
        "task": "Review",
        "label": "l",
        "cleanup": "delete",
        "requesterSessionKey": "agent:main:here",
    }
    assert result["message"] == f"You are the steward.\n\nReview\n\n{second['content']}"
    sources = [part["source"] for part in result["parts"] if part["source"] != "separator"]
    assert sources == ["script:identity", "task", "script:tell"]
    assert [
        (candidate["scriptId"], candidate["verdict"]) for candidate in result["candidates"]
    ] == [("identity", "winner")]
    # Nothing was made for it.
    assert sorted(path.name for path in file.parent.iterdir() if path.is_dir()) == []


def test_table_and_message_are_shown(spawnlog: Command, file: Path) -> None:
    result = spawnlog("script", "test", "steward", "--task", "Review", "--config", str(file))
    assert result.exit_code == 0
    assert "identity  injected  prepend  exit 0" in result.stdout
    assert "identity→main (winner)" in result.stdout
    assert f"configuration  {file}\n" in result.stdout
    assert "\nidentity adds before the task:\n\nYou are the steward.\n" in result.stdout
    assert '\ntell adds after the task:\n\n{"task":"Review"' in result.stdout
    assert "\nmessage:\n\nYou are the steward.\n\nReview" in result.stdout
    assert 'agent "steward" is not configured' in result.stderr


def test_unknown_agent_without_override_is_refused(spawnlog: Command, file: Path) -> None:
    result = spawnlog("script", "test", "nobody", "--task", "Review", "--config", str(file))
    assert "runs as        no agent: a spawn of it is refused (rule agent_unknown)" in result.stdout


def test_failing_script_exits_1(spawnlog: Command, file: Path) -> None:
    result = spawnlog("script", "test", "poor", "--task", "-", "--config", str(file), given="task")
    assert result.exit_code == 1
    assert "Script exited with code 3: why" in result.stderr
    assert "a script failed: fails" in result.stderr
    assert "message:\n\ntask" in result.stdout


def test_no_configuration_file_exits_2(spawnlog: Command) -> None:
    result = spawnlog("script", "test", "steward", "--task", "Review")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "give --config FILE or SPAWNLOG_CONFIG" in result.stderr


@pytest.mark.parametrize(
    ("agent", "more", "says"),
    [
        ("no agent!", (), "AGENT is not a valid agent id"),
        ("main", ("--requester", "agent::"), "--requester: "),
        ("main", ("--config", "/no/such/file"), "/no/such/file"),
    ],
)
def test_impossible_spawn_exits_2(
    spawnlog: Command, file: Path, agent: str, more: tuple[str, ...], says: str
) -> None:
    config = () if "--config" in more else ("--config", str(file))
    result = spawnlog("script", "test", agent, "--task", "t", *config, *more)
    assert result.exit_code == 2
    assert says in result.stderr
