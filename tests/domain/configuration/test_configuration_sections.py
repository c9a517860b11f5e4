from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.configuration.context_scripts import ContextScript
from domain.configuration.runtimes import (
    CommandRuntime,
    ModelRuntime,
    OpenClawRuntime,
    Runtime,
    ScriptedRuntime,
    WorkerRuntime,
)
from domain.configuration.subagents import SubagentDefaults
from domain.configuration.tokens import Token
from domain.configuration.tools import Tools

RUNTIME: TypeAdapter[Any] = TypeAdapter(Runtime)
SCRIPT = {"id": "a", "uri": "~/a.sh"}
TOKEN = {"id": "ops", "token": "${OPS}", "scopes": ["read"], "sessions": ["*"]}


def test_the_defaults_of_subagents_are_those_of_the_specification() -> None:
    defaults = SubagentDefaults()

    assert defaults.allow_agents is None
    assert defaults.require_agent_id is False
    assert defaults.max_concurrent == 8
    assert defaults.max_spawn_depth == 1
    assert defaults.max_children_per_agent == 5
    assert defaults.archive_after_minutes == 60
    assert defaults.run_timeout_seconds == 0
    assert defaults.announce_timeout_ms == 120_000
    assert defaults.context_preamble_max_chars == 4000


@pytest.mark.parametrize(
    "values",
    [
        {"maxSpawnDepth": 0},
        {"maxSpawnDepth": 6},
        {"maxChildrenPerAgent": 0},
        {"maxChildrenPerAgent": 21},
        {"maxConcurrent": 0},
        {"archiveAfterMinutes": -1},
        {"runTimeoutSeconds": -1},
        {"announceTimeoutMs": 0},
        {"maxConcurrent": True},
        {"maxConcurrent": "8"},
        {"maxConcurrent": None},
        {"requireAgentId": 1},
        {"allowAgents": "*"},
        {"allowAgents": [1]},
        {"contextPreambleMaxChars": -1},
    ],
)
def test_what_is_out_of_range_or_of_another_type_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SubagentDefaults.model_validate(values)


def test_the_defaults_of_a_script_are_those_of_the_specification() -> None:
    script = ContextScript.model_validate(SCRIPT)

    assert (script.format, script.method, script.priority) == ("arguments", "GET", 0)
    assert (script.position, script.log, script.error_handling) == ("append", False, "continue")
    assert (script.return_key, script.error_key, script.agent_id_override_key) == (None,) * 3
    assert (script.arg_map, script.timeout_seconds) == ({}, 10)


def test_a_priority_stays_the_number_that_was_written() -> None:
    assert repr(ContextScript.model_validate({**SCRIPT, "priority": 100}).priority) == "100"
    assert repr(ContextScript.model_validate({**SCRIPT, "priority": -0.5}).priority) == "-0.5"


def test_a_method_is_read_in_upper_case() -> None:
    assert ContextScript.model_validate({**SCRIPT, "method": "post"}).method == "POST"


@pytest.mark.parametrize(
    "values",
    [
        {"id": ""},
        {"id": " "},
        {"id": "a\nb"},
        {"uri": ""},
        {"uri": "file:///etc/passwd"},
        {"uri": "https://"},
        {"uri": "http://[::1"},
        {"uri": "http://h:99999/"},
        {"method": "GE T"},
        {"log": 1},
        {"log": "true"},
        {"priority": True},
        {"priority": "1"},
        {"position": "before"},
        {"argMap": {"a": "targetAgent"}},
        {"argMap": {"": "task"}},
        {"timeoutSeconds": 0},
        {"timeoutSeconds": 601},
        {"returnKey": ""},
        {"unknown": 1},
    ],
)
def test_a_script_that_cannot_work_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContextScript.model_validate({**SCRIPT, **values})


def test_a_url_refers_to_its_secrets_and_does_not_hold_them() -> None:
    for kept in ("https://u:${PASSWORD}@h/x", "https://h/x?token=${TOKEN}", "HTTP://h/?q=1"):
        assert ContextScript.model_validate({**SCRIPT, "uri": kept}).is_remote

    for refused in ("https://u:secret@h/x", "https://h/x?q=1&api_key=secret"):
        with pytest.raises(ValidationError, match=r"\$\{NAME\}|NAME"):
            ContextScript.model_validate({**SCRIPT, "uri": refused})


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ({"type": "command", "command": ["x"]}, CommandRuntime),
        ({"type": "scripted"}, ScriptedRuntime),
        ({"type": "worker", "queue": "q"}, WorkerRuntime),
        ({"type": "model", "baseUrl": "http://x", "anything": [1]}, ModelRuntime),
        ({"type": "embedded"}, OpenClawRuntime),
        ({"type": "acp", "acp": {"agent": "codex"}}, OpenClawRuntime),
    ],
)
def test_a_runtime_is_read_by_its_type(values: dict[str, object], type_: type) -> None:
    assert isinstance(RUNTIME.validate_python(values), type_)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"command": []}, "at least 1"),
        ({"command": [" "]}, "must name a program"),
        ({"command": ["x", "a\0b"]}, "NUL"),
        ({"command": "x"}, "tuple"),
        ({"command": ["x"], "input": "argv"}, r"must contain \{prompt\}"),
        ({"command": ["x"], "input": "stdin"}, "stdin-json"),
        ({"command": ["x"], "env": {"A-B": "1"}}, "name of an environment variable"),
        ({"command": ["x"], "env": {"SPAWNLOG_TOKEN": "1"}}, "is set by spawnlog"),
        ({"command": ["x"], "env": {"A": "a\0b"}}, "NUL"),
        ({"command": ["x"], "env": {"A": 1}}, "string"),
        ({"command": ["x"], "cwd": ""}, "blank"),
        ({"command": ["x"], "shell": True}, "not permitted"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused(
    values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        RUNTIME.validate_python({"type": "command", **values})


def test_a_script_step_does_one_thing_or_waits() -> None:
    played = RUNTIME.validate_python(
        {
            "type": "scripted",
            "steps": [
                {"afterMs": 5},
                {"message": "hello"},
                {"tool": {"name": "read", "input": {"path": "x"}, "output": "y"}},
                {"usage": {"inputTokens": 1, "outputTokens": 2, "model": "p/m"}},
            ],
            "outcome": "error",
            "error": "it broke",
        }
    )

    assert played.steps[0].after_ms == 5
    assert played.steps[2].tool.input == {"path": "x"}
    with pytest.raises(ValidationError, match="only one of"):
        RUNTIME.validate_python({"type": "scripted", "steps": [{"message": "a", "usage": {}}]})
    with pytest.raises(ValidationError, match="needs outcome"):
        RUNTIME.validate_python({"type": "scripted", "error": "it broke"})


def test_limits_of_attachments_are_rounded_down() -> None:
    tools = Tools.model_validate({"sessions_spawn": {"attachments": {"maxFiles": 2.7}}})

    attachments = tools.sessions_spawn.attachments
    assert (attachments.enabled, attachments.max_files) == (False, 2)
    assert (attachments.max_total_bytes, attachments.max_file_bytes) == (5_242_880, 1_048_576)


def test_allow_and_also_allow_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="cannot stand beside allow"):
        Tools.model_validate({"subagents": {"tools": {"allow": ["a"], "alsoAllow": ["b"]}}})
    Tools.model_validate({"subagents": {"tools": {"allow": [], "alsoAllow": ["b"]}}})


def test_a_token_is_a_reference_to_a_variable_a_file_or_a_kept_revision() -> None:
    assert Token.model_validate(TOKEN).token.variable == "OPS"
    assert Token.model_validate({**TOKEN, "token": {"file": "ops"}}).token.file == "ops"
    kept = Token.model_validate({**TOKEN, "token": {"$secret": "/spawnlog/tokens/0/token"}})
    assert kept.token.secret is not None
    assert kept.token.secret.pointer == "/spawnlog/tokens/0/token"


@pytest.mark.parametrize(
    "token",
    ["s3cret-value", "${OPS} s3cret-value", "", {"variable": "OPS"}, {"file": ""}, 5, None, {}],
)
def test_a_token_that_stands_in_the_file_is_refused_and_not_repeated(token: object) -> None:
    with pytest.raises(ValidationError) as caught:
        Token.model_validate({**TOKEN, "token": token})

    assert "s3cret-value" not in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"scopes": []}, {"scopes": ["root"]}, {"sessions": []}, {"id": ""}]
)
def test_a_token_says_what_it_may_do_and_for_which_sessions(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Token.model_validate({**TOKEN, **values})
