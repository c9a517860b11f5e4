"""What carries out runs: each kind with its own keys, and what it says of itself."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.runtimes import (
    CommandRuntime,
    OpenClawRuntime,
    Runtime,
    ScriptedRuntime,
    WorkerRuntime,
)

RUNTIME: TypeAdapter[Any] = TypeAdapter(Runtime)


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


@pytest.mark.parametrize(
    "values",
    [
        {"type": "command", "command": ["x"]},
        {"type": "scripted"},
        {"type": "worker", "queue": "q"},
        {"type": "model"},
    ],
)
def test_a_runtime_may_declare_the_models_it_serves(values: dict[str, object]) -> None:
    assert RUNTIME.validate_python(values).models is None
    declared = ["*", "p/*", "claude", "p/m"]
    assert RUNTIME.validate_python({**values, "models": declared}).models == tuple(declared)
    for wrong in (["a b"], ["*/m"], [""], ["x"] * 201, "p/m", [1]):
        with pytest.raises(ValidationError):
            RUNTIME.validate_python({**values, "models": wrong})


def test_a_runtime_that_executes_may_say_that_it_isolates_itself() -> None:
    for values in ({"type": "command", "command": ["x"]}, {"type": "scripted"}):
        assert RUNTIME.validate_python(values).provides_sandbox is False
        assert RUNTIME.validate_python({**values, "providesSandbox": True}).provides_sandbox
        with pytest.raises(ValidationError):
            RUNTIME.validate_python({**values, "providesSandbox": "yes"})


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
