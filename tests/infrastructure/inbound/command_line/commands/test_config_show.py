"""`spawnlog config show` and what `config check` warns of, with real files."""

import json
from pathlib import Path

import pytest

from tests.support.servers.command_line import Command

FILE = """{
  agents: {
    defaults: {
      subagents: { allowAgents: ["countr"] },
      runtime: { type: "command", command: ["true"], env: { API_KEY: "s3cret" } },
    },
    list: [{ id: "main" }, { id: "counter", subagents: { thinking: "low" } }],
  },
  spawnlog: { databaseUrl: "postgresql://u:s3cret@h/d" },
}"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "spawnlog.json5"
    path.write_text(FILE, "utf-8")
    return str(path)


def test_what_a_file_says_is_shown_without_its_secrets(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file)

    shown = json.loads(result.stdout)
    assert result.exit_code == 0
    assert "s3cret" not in result.output
    assert shown["agents"]["list"][1] == {"id": "counter", "subagents": {"thinking": "low"}}
    assert shown["spawnlog"] == {"databaseUrl": {"$secret": "/spawnlog/databaseUrl"}}
    env = shown["agents"]["defaults"]["runtime"]["env"]
    assert env == {"API_KEY": {"$secret": "/agents/defaults/runtime/env/API_KEY"}}


def test_effective_writes_every_default_out(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file, "--effective", "-o", "jsonl")

    shown = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert "s3cret" not in result.output
    assert shown["spawnlog"]["leaseSeconds"] == 15
    assert shown["spawnlog"]["databaseUrl"] == {"$secret": "/spawnlog/databaseUrl"}
    assert shown["agents"]["defaults"]["subagents"]["maxSpawnDepth"] == 1


def test_an_agent_is_shown_value_by_value_with_the_place_of_each(
    spawnlog: Command, file: str
) -> None:
    lines = spawnlog("config", "show", file, "--agent", "COUNTER").stdout.splitlines()

    assert lines[0].split() == ["KEY", "VALUE", "FROM"]
    rows = [line.split() for line in lines]
    assert ["thinking", "low", "agents.list[1].subagents.thinking"] in rows
    assert ["mayName", "countr", "agents.defaults.subagents.allowAgents"] in rows
    assert ["maxConcurrent", "8", "built-in"] in rows


def test_an_agent_is_shown_as_json_too(spawnlog: Command, file: str) -> None:
    rows = json.loads(spawnlog("config", "show", file, "--agent", "main", "-o", "json").stdout)

    assert {"key": "requireAgentId", "value": False, "from": "built-in"} in rows
    lines = spawnlog("config", "show", file, "--agent", "main", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_an_agent_that_is_not_there_is_not_found(spawnlog: Command, file: str) -> None:
    result = spawnlog("config", "show", file, "--agent", "count")

    assert result.exit_code == 4
    assert 'there is no agent "count"; did you mean "counter"?' in result.stderr
    assert spawnlog("config", "show", file, "--agent", "\x1b[1m").exit_code == 4


def test_without_a_file_the_built_in_configuration_is_shown(spawnlog: Command) -> None:
    shown = json.loads(spawnlog("config", "show").stdout)
    assert [agent["id"] for agent in shown["agents"]["list"]] == ["main"]
    rows = json.loads(spawnlog("config", "show", "--agent", "main", "-o", "json").stdout)
    assert {row["from"] for row in rows} == {"built-in"}


def test_a_file_with_mistakes_is_not_shown(spawnlog: Command, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json5"
    path.write_text("{spawnlog: {prot: 1}}", "utf-8")
    result = spawnlog("config", "show", str(path))

    assert result.exit_code == 2
    assert 'spawnlog.prot: unknown key; did you mean "port"?' in result.stderr
    assert result.stdout == ""


def test_what_is_doubtful_is_a_warning_with_its_line_and_no_error(
    spawnlog: Command, file: str
) -> None:
    result = spawnlog("config", "check", file)

    assert result.exit_code == 0
    assert "is right" in result.stdout
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: ")
    assert "spawnlog.json5:4:34: agents.defaults.subagents.allowAgents[0]: " in warning
    assert warning.endswith(
        'is not configured: a spawn that names it is refused; did you mean "counter"?'
    )
