"""Secrets in sections of ours that keep what they hold, and folders that are roots of all."""

import json
from pathlib import Path
from typing import Any

import pytest

from domain.configuration.problems import ConfigurationError, ConfigurationProblem
from domain.plan.effective import effective_values
from infrastructure.outbound.configuration.load import configuration_from_stored
from tests.support.builders.configurations import load_text, load_values

RUNTIME = {"type": "scripted"}
RUNNING = json.dumps({"defaults": {"runtime": RUNTIME}})
OF_OTHERS = """{
 agents: {list: [{id: "main", runtime: {type: "command", command: ["curl"], env: {A: "s3cret"}}}]},
 gateway: {auth: {password: 908172, token: "s3cret"}, remote: {url: "https://s3cret@host/x"}},
 channels: {x: {botToken: "s3cret", hook: "https://host/?X-Amz-Signature=s3cret"}},
 mcp: {servers: {y: {command: "y", args: ["--api-key", "s3cret", "--token=s3cret"]}}},
 spawnlog: {databaseUrl: "postgresql://u:s3cret@h/db"},
}"""


def problem_of(text: str) -> ConfigurationProblem:
    with pytest.raises(ConfigurationError) as caught:
        load_text(text, "x.json5")
    (problem,) = caught.value.problems
    assert "s3cret" not in str(problem)
    return problem


def test_no_secret_of_another_program_is_kept_or_shown() -> None:
    loaded = load_text(OF_OTHERS, "x.json5")
    shown = json.dumps(effective_values(configuration_from_stored(loaded.stored), loaded.stored))

    for text in (loaded.stored_text, shown):
        assert "s3cret" not in text
        assert "908172" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        "'-H', 'Authorization: Bearer s3cret'",
        "'--fast', '--token=s3cret'",
        "'--api-key', 's3cret'",
        "'--url', 'https://s3cret@host/'",
        "'--url', 'https://host/?sig=s3cret'",
    ],
)
def test_a_secret_in_a_command_is_refused_with_its_line_and_the_way_out(arguments: str) -> None:
    runtime = f"{{type: 'command',\n command: ['x',\n  {arguments}]}}"
    problem = problem_of(f"{{agents: {{list: [{{id: 'a', runtime: {runtime}}}]}}}}")

    assert problem.line == 3
    assert problem.pointer.startswith("/agents/list/0/runtime/command/")
    assert 'put it into the env of the runtime as NAME: "${NAME}"' in problem.message


@pytest.mark.parametrize(
    "uri",
    [
        "https://s3cret@host/hook",
        "https://u:s3cret@host/hook",
        "https://s3cret:${PASSWORD}@host/hook",
        "https://host/hook?sig=s3cret",
        "https://host/hook?token=s3cret${TOKEN}",
        "https://host/hook#code=s3cret",
    ],
)
def test_a_secret_in_the_uri_of_a_script_is_refused_with_its_line(uri: str) -> None:
    script = f"{{id: 'x',\n uri: '{uri}'}}"
    problem = problem_of(
        f"{{agents: {{defaults: {{subagents: {{contextScripts: {{run: [{script}]}}}}}}}}}}"
    )

    assert problem.line == 2
    assert problem.pointer == "/agents/defaults/subagents/contextScripts/run/0/uri"
    assert "write ${NAME} in its place" in problem.message


def test_the_uri_of_a_script_may_hold_references() -> None:
    uri = "https://${USER}:${PASSWORD}@host/hook?sig=${SIG}"
    scripts = {"run": [{"id": "x", "uri": uri}]}
    loaded = load_values({"agents": {"defaults": {"subagents": {"contextScripts": scripts}}}})
    assert loaded.secret_pointers == ()
    assert uri in loaded.stored_text


@pytest.mark.parametrize("section", ["channels", "spawnlog"])
def test_a_key_that_holds_a_secret_is_refused_and_not_shown(section: str) -> None:
    problem = problem_of(f"{{{section}: {{\n 'https://s3cret@host/': {{token: 'x'}}}}}}")
    assert problem.pointer == f"/{section}"
    assert "a key below this one holds a secret" in problem.message


def test_a_root_that_holds_back_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "all").symlink_to("/")
    roots = json.dumps(["/", str(tmp_path), "/../.", str(tmp_path / "all")])
    text = f"{{agents: {RUNNING}, spawnlog: {{\n workspaceRoots: {roots}}}}}"
    warnings = load_text(text, "x.json5").warnings

    assert [one.pointer.rpartition("/")[2] for one in warnings] == ["0", "2", "3"]
    assert warnings[0].line == 2
    assert all(one.message.startswith("is the whole machine: ") for one in warnings)


def test_a_root_that_cannot_be_told_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UNSET_ROOT", raising=False)
    monkeypatch.setenv("EMPTY_ROOT", "")
    roots = ["${UNSET_ROOT}/x", "${EMPTY_ROOT}", "~nobody-of-this-name/x", "fine"]
    values = {"agents": json.loads(RUNNING), "spawnlog": {"workspaceRoots": roots}}
    unset, empty, home = load_values(values).warnings

    assert unset.pointer == "/spawnlog/workspaceRoots/0"
    assert "UNSET_ROOT: is not set" in unset.message
    assert "holds nothing" in empty.message
    assert "home folder" in home.message


def test_a_workspace_that_cannot_be_told_is_told_where_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("UNSET_HOME", raising=False)
    agents: dict[str, Any] = {
        "defaults": {"workspace": "${UNSET_HOME}/w", "runtime": RUNTIME},
        "list": [{"id": "a"}, {"id": "b"}, {"id": "c", "workspace": "${UNSET_HOME}/c"}],
    }
    shared, own = load_values({"agents": agents}).warnings

    assert (shared.pointer, own.pointer) == (
        "/agents/defaults/workspace",
        "/agents/list/2/workspace",
    )
    assert shared.message == (
        "cannot be resolved, and a spawn that would work there is refused: UNSET_HOME: is not set,"
        " and the configuration refers to it"
    )
    agents["list"][0]["workspace"] = agents["list"][2]["workspace"] = "fine"
    assert load_values({"agents": agents}).warnings == ()
