"""The example configuration and its programs work as described."""

import json
import subprocess
from pathlib import Path

import pytest

from domain.configuration.configuration import Configuration
from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.runtimes import CommandRuntime
from infrastructure.outbound.configuration.load import load

EXAMPLES = Path(__file__).parents[2] / "examples"


def configuration() -> Configuration:
    return load(EXAMPLES / "spawnlog.json5").configuration


def command_of(agent_id: str) -> CommandRuntime:
    runtime = configuration().effective_agent(agent_id).runtime
    assert isinstance(runtime, CommandRuntime)
    return runtime


def asked(agent_id: str, task: str) -> "subprocess.CompletedProcess[str]":
    """Run the agent's program as a server does, in the agent's workspace."""
    runtime = command_of(agent_id)
    prompt = {
        "agentId": agent_id,
        "systemPrompt": "# Subagent Context\n\n## Rules\n\nStay focused.",
        "message": f"[Subagent Context] You are one.\n\nBegin.\n\n{task}",
        "sharedContext": {"goal": "a quiet harbour"},
    }
    text = f"{prompt['systemPrompt']}\n\n{prompt['message']}"
    return subprocess.run(
        runtime.command,
        input=json.dumps(prompt) if runtime.input == "stdin-json" else text,
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def identity_of(agent_id: str) -> str:
    finished = subprocess.run(
        [EXAMPLES / "scripts" / "identity.sh", f"targetAgentId={agent_id}"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return finished.stdout


def test_the_example_configuration_holds_no_mistake_and_no_secret() -> None:
    loaded = load(EXAMPLES / "spawnlog.json5")
    assert loaded.configuration.default_agent_id == "main"
    assert loaded.secret_pointers == ()


def test_every_program_that_the_configuration_names_exists() -> None:
    for agent_id in configuration().agent_ids():
        assert (EXAMPLES / command_of(agent_id).command[-1]).is_file(), agent_id
    scripts = configuration().effective_agent("steward").context_scripts
    assert [script.id for script in scripts] == ["identity"]
    assert (EXAMPLES / scripts[0].uri).is_file()


def test_the_counter_counts_a_file_of_its_folder() -> None:
    text = (EXAMPLES / "data" / "harbour.txt").read_text("utf-8")
    stdout = asked("counter", "Count the words of data/harbour.txt").stdout
    assert stdout.startswith(f"data/harbour.txt: {text.count(chr(10))} lines, {len(text.split())} ")


def test_the_counter_stays_in_its_folder() -> None:
    finished = asked("counter", "Count the words of data/../../pyproject.toml")
    assert finished.returncode == 2
    assert "only files of this folder" in finished.stderr


def test_the_searcher_tells_what_it_reads_and_what_it_found() -> None:
    lines = [
        json.loads(line)
        for line in asked("searcher", 'Search for "Low" in data').stdout.splitlines()
    ]
    kinds = [line["type"] for line in lines]
    assert kinds == ["progress", "tool", "tool", "message", "usage", "result"]
    assert lines[-1]["text"].startswith('"Low": 3 of it in 3 files\n')
    assert lines[-2]["inputTokens"] > 0


def test_the_searcher_stays_in_its_folder() -> None:
    finished = asked("searcher", 'Search for "spawnlog" in ../docs')
    assert finished.returncode == 1
    assert "only folders below" in finished.stderr


def test_the_summer_sums_exactly() -> None:
    stdout = asked("summer", "Sum amount of data/sales.csv where region is north").stdout
    assert stdout == "amount of data/sales.csv where region is north: 490.60 in 3 rows\n"


def test_the_summer_names_the_columns_when_asked_for_another() -> None:
    finished = asked("summer", "Sum price of data/sales.csv")
    assert finished.returncode == 1
    assert "there are: date, region, item, amount" in finished.stderr


def test_the_default_agent_repeats_its_message_and_its_shared_context() -> None:
    stdout = asked("main", "Hold the line.").stdout
    assert "I am main at depth" in stdout
    assert 'I share goal: "a quiet harbour"' in stdout
    assert stdout.endswith("Hold the line.\n")


def test_the_failing_agent_fails() -> None:
    finished = asked("failing", "Do it")
    assert (finished.returncode, finished.stderr) == (3, "failing: the harbour is closed\n")


def test_the_sleeper_says_how_far_it_is() -> None:
    stdout = asked("sleeper", "Sleep for 0 seconds").stdout
    assert json.loads(stdout) == {"type": "result", "text": "slept for 0 s"}


def test_an_identity_is_put_before_the_task_of_a_configured_agent() -> None:
    answer = json.loads(identity_of("main"))
    assert answer["targetAgentId"] == "main"
    assert answer["message"].startswith("## Identity")


def test_an_alias_runs_as_its_parent() -> None:
    answer = json.loads(identity_of("steward"))
    assert answer["targetAgentId"] in configuration().agent_ids()
    assert answer["message"].startswith("## Charter")


def test_an_agent_without_an_identity_and_a_path_get_nothing() -> None:
    assert identity_of("counter") == ""
    assert identity_of("../identities/main") == ""


def test_the_example_of_models_is_a_whole_system_once_its_two_variables_are_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("MODEL_API_KEY", "a-key-of-the-test")
    loaded = load(EXAMPLES / "model.json5")
    assert loaded.warnings == ()
    agents = [loaded.configuration.effective_agent(text) for text in ("main", "lead", "worker")]
    for agent in agents:
        assert isinstance(agent.runtime, ModelRuntime)
        assert {loaded.resolve(value) for value in agent.runtime.values().values()} == {
            "http://127.0.0.1:1/v1",
            "a-key-of-the-test",
        }
    assert loaded.configuration.models.cost_of("openai", "gpt-5-mini") is not None
