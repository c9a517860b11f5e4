"""What a command runtime's program is given."""

import json
from typing import Any

import pytest

from application.ports.runtimes import CannotLaunch
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


def test_a_child_that_cannot_call_back_is_told_of_no_tools() -> None:
    assert json.loads(given(command("agent"), token=None, url=None))["mcp"] is None


def test_json_input_says_where_the_attachments_are() -> None:
    value = json.loads(given(command("agent"), attachments_dir="/w/.openclaw/attachments/1"))
    assert value["attachmentsDir"] == "/w/.openclaw/attachments/1"


def test_what_was_said_before_is_named_in_the_input_and_in_a_variable() -> None:
    files = ("/t/main/one.fork.jsonl", "/t/main/two.jsonl")
    value = json.loads(given(command("agent"), history_files=files))
    assert value["history"] == list(files)
    configured = {"SPAWNLOG_HISTORY": "x"}
    program = made(command("agent"), history_files=files, environment=configured)
    assert program.env["SPAWNLOG_HISTORY"] == ":".join(files)
    assert "SPAWNLOG_HISTORY" not in made(command("agent"), environment=configured).env


def test_json_input_names_the_allowed_tools_where_some_are() -> None:
    tools = json.loads(given(command("agent"), tools_allow=("read",)))["tools"]
    assert tools["allow"] == ["read"]


def test_json_input_survives_text_that_is_no_unicode() -> None:
    value = json.loads(given(command("agent"), message="a\ud800b\0c"))
    assert value["message"] == "a\ufffdb\0c"


def test_text_input_is_system_prompt_blank_line_message() -> None:
    text = given(command("agent", input="stdin-text"))
    assert text == "You are a sub-agent.\n\nReview it."


def test_text_input_without_a_system_prompt_is_the_message() -> None:
    assert given(command("agent", input="stdin-text"), system_prompt="") == "Review it."


def test_the_prompt_takes_the_placeholder_in_every_argument() -> None:
    runtime = command("agent", "--prompt={prompt}", "{prompt}", "{other}", input="argv")
    program = made(runtime, system_prompt="", message="{prompt} $(id) 'a' \"b\"\n")
    prompt = "{prompt} $(id) 'a' \"b\"\n"
    assert program.argv == ("agent", f"--prompt={prompt}", prompt, "{other}")
    assert program.stdin is None


def test_a_placeholder_is_left_alone_where_the_prompt_comes_on_stdin() -> None:
    assert made(command("agent", "{prompt}")).argv == ("agent", "{prompt}")


def test_a_prompt_of_the_limit_fits_into_an_argument() -> None:
    runtime = command("agent", "{prompt}", input="argv")
    assert len(made(runtime, system_prompt="", message="x" * 102_400).argv[1]) == 102_400


@pytest.mark.parametrize("message", ["x" * 102_401, "é" * 51_201])
def test_a_prompt_over_the_limit_is_refused_with_the_way_out(message: str) -> None:
    runtime = command("agent", "{prompt}", input="argv")
    with pytest.raises(CannotLaunch, match=r"at most 102400 .*stdin-json") as refused:
        made(runtime, system_prompt="", message=message)
    assert refused.value.reason == "prompt_too_large"


def test_a_prompt_that_fits_once_but_not_twice_is_refused() -> None:
    runtime = command("agent", "{prompt}{prompt}", input="argv")
    with pytest.raises(CannotLaunch, match="in one argument") as refused:
        made(runtime, system_prompt="", message="x" * 70_000)
    assert refused.value.reason == "prompt_too_large"


def test_a_prompt_never_names_the_program() -> None:
    runtime = command("{prompt}", input="argv")
    with pytest.raises(CannotLaunch, match="names no program") as refused:
        made(runtime, message="/bin/sh")
    assert refused.value.reason == "not_executable"


def test_nothing_of_the_servers_environment_but_four_variables_is_passed_on() -> None:
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


def test_configured_variables_may_replace_the_servers_but_not_ours() -> None:
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
def test_it_works_in_the_workspace_or_from_there(
    workspace: str | None, cwd: str | None, expected: str
) -> None:
    assert made(command("agent", cwd=cwd), workspace_dir=workspace).cwd == expected


def test_a_program_may_be_named_from_the_home_directory() -> None:
    assert made(command("~/bin/agent", "~/x")).argv == ("/home/of-the-server/bin/agent", "~/x")


def test_what_no_program_can_be_given_is_refused_without_its_text() -> None:
    with pytest.raises(CannotLaunch, match="'KEY' holds a NUL") as refused:
        made(command("agent"), environment={"KEY": "secret\0value"})
    assert refused.value.reason == "not_executable"
    assert "secret" not in str(refused.value)
