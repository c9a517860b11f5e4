"""Input of a command runtime's program."""

import json
from typing import Any

import pytest

from application.ports.runtimes import LaunchError
from domain.configuration.runtimes import CommandRuntime
from infrastructure.outbound.child_processes.program import Program
from infrastructure.outbound.runtimes.command_input import program_for
from tests.support.builders.launches import SERVER, command, launch


def made(runtime: CommandRuntime, **changes: Any) -> Program:
    return program_for(launch(runtime, **changes), runtime, server=SERVER, folder="/etc/spawnlog")


def given(runtime: CommandRuntime, **changes: Any) -> str:
    program = made(runtime, **changes)
    assert program.stdin is not None
    return program.stdin.decode()


def test_json_input_has_exactly_the_promised_keys() -> None:
    assert json.loads(given(command("agent"))) == {
        "runId": "11111111-2222-4333-8444-555555555555",
        "sessionKey": "agent:steward:subagent:child",
        "agentId": "steward",
        "label": None,
        "depth": 1,
        "lane": None,
        "runTimeoutSeconds": 0,
        "requester": {
            "sessionKey": "agent:main:main",
            **dict.fromkeys(("channel", "accountId", "to", "threadId")),
            **dict.fromkeys(("groupId", "groupChannel", "groupSpace", "memberRoleIds")),
        },
        "systemPrompt": "You are a sub-agent.",
        "message": "Review it.",
        "model": "provider/model",
        "thinking": "low",
        "sharedContext": {"goal": {"x": 1}},
        "tools": {"allow": None, "deny": ["sessions_spawn"]},
        "attachmentsDir": None,
        "history": [],
        "deliveryOrigin": None,
        "deliver": False,
        "mcp": {
            "mcpServers": {
                "spawnlog": {
                    "type": "http",
                    "url": "http://127.0.0.1:8700/mcp",
                    "headers": {"Authorization": "Bearer child-token-of-this-run"},
                }
            }
        },
    }


def test_history_is_in_input_and_variable() -> None:
    files = ("/t/main/one.fork.jsonl", "/t/main/two.jsonl")
    value = json.loads(given(command("agent"), history_files=files))
    assert value["history"] == list(files)
    configured = {"SPAWNLOG_HISTORY": "x"}
    program = made(command("agent"), history_files=files, environment=configured)
    assert program.env["SPAWNLOG_HISTORY"] == ":".join(files)
    assert "SPAWNLOG_HISTORY" not in made(command("agent"), environment=configured).env


def test_json_input_has_what_was_given() -> None:
    changes: dict[str, Any] = {
        "attachments_dir": "/w/.openclaw/attachments/1",
        "tools_allow": ("read",),
        "message": "a\ud800b\0c",
    }
    value = json.loads(given(command("agent"), token=None, url=None, **changes))
    assert value["mcp"] is None
    assert value["attachmentsDir"] == "/w/.openclaw/attachments/1"
    assert value["tools"]["allow"] == ["read"]
    assert value["message"] == "a\ufffdb\0c"


def test_text_input_is_system_prompt_and_message() -> None:
    runtime = command("agent", input="stdin-text")
    assert given(runtime) == "You are a sub-agent.\n\nReview it."
    assert given(runtime, system_prompt="") == "Review it."


def test_prompt_takes_the_placeholder_in_every_argument() -> None:
    runtime = command("agent", "--prompt={prompt}", "{prompt}", "{other}", input="argv")
    prompt = "{prompt} $(id) 'a' \"b\"\n"
    program = made(runtime, system_prompt="", message=prompt)
    assert program.argv == ("agent", f"--prompt={prompt}", prompt, "{other}")
    assert program.stdin is None


def test_placeholder_is_left_alone_with_stdin() -> None:
    assert made(command("agent", "{prompt}")).argv == ("agent", "{prompt}")


@pytest.mark.parametrize(
    ("words", "message", "match", "reason"),
    [
        (("agent", "{prompt}"), "x" * 102_401, "at most 102400; .*stdin-json", "prompt_too_large"),
        (("agent", "{prompt}"), "é" * 51_201, "at most 102400; .*stdin-json", "prompt_too_large"),
        (("agent", "{prompt}{prompt}"), "x" * 70_000, "in one argument", "prompt_too_large"),
        (("{prompt}",), "/bin/sh", "in the name of its program", "not_executable"),
    ],
)
def test_impossible_prompt_is_refused(
    words: tuple[str, ...], message: str, match: str, reason: str
) -> None:
    with pytest.raises(LaunchError, match=match) as refused:
        made(command(*words, input="argv"), system_prompt="", message=message)
    assert refused.value.reason == reason


def test_prompt_of_the_limit_fits_into_an_argument() -> None:
    runtime = command("agent", "{prompt}", input="argv")
    assert len(made(runtime, system_prompt="", message="x" * 102_400).argv[1]) == 102_400


def test_four_variables_of_the_server_are_passed_on() -> None:
    program = made(command("agent"), environment={"KEY": "value"})
    assert program.env == {
        "PATH": SERVER["PATH"],
        "HOME": "/home/of-the-server",
        "LANG": "C.UTF-8",
        "KEY": "value",
        "SPAWNLOG_RUN_ID": "11111111-2222-4333-8444-555555555555",
        "SPAWNLOG_SESSION_KEY": "agent:steward:subagent:child",
        "SPAWNLOG_AGENT_ID": "steward",
        "SPAWNLOG_REQUESTER_SESSION_KEY": "agent:main:main",
        "SPAWNLOG_DEPTH": "1",
        "SPAWNLOG_URL": "http://127.0.0.1:8700",
        "SPAWNLOG_MCP_URL": "http://127.0.0.1:8700/mcp",
        "SPAWNLOG_TOKEN": "child-token-of-this-run",
    }


def test_configured_variables_do_not_replace_ours() -> None:
    environment = {"PATH": "/opt/bin", "SPAWNLOG_RUN_ID": "other", "SPAWNLOG_TOKEN": "other"}
    program = made(command("agent"), environment=environment, token=None, url=None)
    assert program.env["PATH"] == "/opt/bin"
    assert program.env["SPAWNLOG_RUN_ID"] == "11111111-2222-4333-8444-555555555555"
    assert not {"SPAWNLOG_TOKEN", "SPAWNLOG_URL", "SPAWNLOG_MCP_URL"} & set(program.env)


@pytest.mark.parametrize(
    ("workspace", "cwd", "expected"),
    [
        (None, None, "/etc/spawnlog"),
        (None, "sub", "/etc/spawnlog/sub"),
        ("/srv/work", None, "/srv/work"),
        ("/srv/work", "sub", "/srv/work/sub"),
        ("work", "sub", "/etc/spawnlog/work/sub"),
        ("/srv/work", "/tmp", "/tmp"),
        ("~/work", None, "/home/of-the-server/work"),
        ("/srv/work", "~", "/home/of-the-server"),
    ],
)
def test_folder_starts_from_the_workspace(
    workspace: str | None, cwd: str | None, expected: str
) -> None:
    assert made(command("agent", cwd=cwd), workspace_dir=workspace).cwd == expected


def test_program_may_be_named_from_home() -> None:
    assert made(command("~/bin/agent", "~/x")).argv == ("/home/of-the-server/bin/agent", "~/x")


def test_impossible_variable_is_refused_without_its_value() -> None:
    with pytest.raises(LaunchError, match="'KEY' contains a NUL") as refused:
        made(command("agent"), environment={"KEY": "secret\0value"})
    assert refused.value.reason == "not_executable"
    assert "secret" not in str(refused.value)
