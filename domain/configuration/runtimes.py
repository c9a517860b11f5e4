"""Runtimes that execute an agent's runs."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, model_validator

from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.models import ServedModels
from domain.configuration.problems import pointer_of
from domain.configuration.secrets import SecretReference, SecretText
from domain.configuration.sections import (
    Flag,
    NameText,
    OwnSection,
    SharedSection,
    Text,
    Whole,
    section_error,
)
from domain.values.runtime_types import EXTERNAL

PROMPT_PLACEHOLDER = "{prompt}"
RESERVED_VARIABLES = frozenset(
    {
        "SPAWNLOG_RUN_ID",
        "SPAWNLOG_SESSION_KEY",
        "SPAWNLOG_AGENT_ID",
        "SPAWNLOG_REQUESTER_SESSION_KEY",
        "SPAWNLOG_DEPTH",
        "SPAWNLOG_URL",
        "SPAWNLOG_MCP_URL",
        "SPAWNLOG_TOKEN",
        "SPAWNLOG_HISTORY",
    }
)
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Milliseconds = Annotated[Whole, Field(ge=0, le=86_400_000)]
TokenCount = Annotated[Whole, Field(ge=0)]


class CommandRuntime(OwnSection):
    """A runtime that starts one process per run."""

    type: Literal["command"]
    """A program for each run."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Program and arguments. Example: `["my-agent", "--print", "{prompt}"]`"""

    input: Literal["stdin-json", "stdin-text", "argv"] = "stdin-json"
    """How the program gets its prompt. `argv` replaces `{prompt}` in `command`."""

    output: Literal["text", "jsonl"] = "text"
    """`jsonl`: each line is an entry of the transcript. `text`: the output is the result."""

    cwd: NameText | None = None
    """Working folder, relative to the workspace. Unset: the workspace."""

    env: dict[Text, SecretText] = Field(default_factory=dict, repr=False)
    """Variables of the program. Example: `{ API_KEY: "${API_KEY}" }`"""

    models: ServedModels | None = None
    """Models that it serves; others are skipped with a warning. Unset: any. Example:
    `["openai/*"]`
    """

    provides_sandbox: Flag = False
    """The command isolates itself. spawnlog isolates nothing."""

    delivers_to_origin: Flag = False
    """The command itself sends results to the thread of its session."""

    @model_validator(mode="after")
    def _require_startable(self) -> "CommandRuntime":
        if not self.command[0].strip():
            raise section_error("command", "must name a program", at="command/0")
        for index, argument in enumerate(self.command):
            if "\0" in argument:
                raise section_error("command", "must not contain NUL", at=f"command/{index}")
        if self.input == "argv" and not any(PROMPT_PLACEHOLDER in part for part in self.command):
            message = f'must contain {PROMPT_PLACEHOLDER} if input is "argv"'
            raise section_error("command", message, at="command")
        for name, value in self.env.items():
            at = "env" + pointer_of([name])
            if not _VARIABLE_NAME.fullmatch(name):
                raise section_error("env", "is not a valid name of an environment variable", at=at)
            if name in RESERVED_VARIABLES:
                raise section_error("env", "is set by spawnlog for each run", at=at)
            if isinstance(value, str) and "\0" in value:
                raise section_error("env", "must not contain NUL", at=at)
        return self


class ToolCall(OwnSection):
    """A tool call to play back."""

    name: NameText
    """Name of the tool. Example: `"grep"`"""

    input: Any = None
    """Its input."""

    output: Any = None
    """Its output."""


class TokenUsage(OwnSection):
    """Token counts to play back."""

    input_tokens: TokenCount = 0
    """Input tokens."""

    output_tokens: TokenCount = 0
    """Output tokens."""

    cache_read_tokens: TokenCount = 0
    """Tokens read from a cache."""

    cache_write_tokens: TokenCount = 0
    """Tokens written to a cache."""

    model: Text | None = None
    """Model that they were used with. Example: `"openai/gpt-5"`"""


class ScriptedStep(OwnSection):
    """One step of playback: wait `after_ms` milliseconds, then do at most one thing.

    A step that names nothing is a pause.
    """

    after_ms: Milliseconds = 0
    """Milliseconds to wait before the step."""

    message: Text | None = None
    """Message of the agent. Example: `"Half way."`"""

    tool: ToolCall | None = None
    """Tool call."""

    usage: TokenUsage | None = None
    """Token counts."""

    @model_validator(mode="after")
    def _require_single_action(self) -> "ScriptedStep":
        if sum(part is not None for part in (self.message, self.tool, self.usage)) > 1:
            raise section_error("step", "must have only one of message, tool and usage")
        return self


class ScriptedRuntime(OwnSection):
    """A runtime that plays back configured steps, without side effects; for demos and tests."""

    type: Literal["scripted"]
    """Plays back steps, for demos and tests."""

    steps: tuple[ScriptedStep, ...] = ()
    """What happens, in order. A step has at most one of `message`, `tool` and `usage`."""

    result: Text | None = None
    """Result of the run. Example: `"Done."`"""

    outcome: Literal["success", "error", "timeout", "unknown"] = "success"
    """Outcome of the run."""

    error: Text | None = None
    """Error text; needs another outcome than `success`."""

    models: ServedModels | None = None
    """Models that it serves. Unset: any."""

    provides_sandbox: Flag = False
    """Counts as a sandbox."""

    @model_validator(mode="after")
    def _require_failed_outcome(self) -> "ScriptedRuntime":
        if self.error is not None and self.outcome == "success":
            raise section_error(
                "error", 'needs outcome "error", "timeout" or "unknown"', at="error"
            )
        return self


class ExternalRuntime(OwnSection):
    """A runtime whose runs an external executor claims over HTTP.

    `provides_sandbox` is True if the executor runs them in a sandbox.
    """

    type: Literal["external"]
    """An executor claims the run over HTTP."""

    models: ServedModels | None = None
    """Models that the executor serves. Unset: any."""

    provides_sandbox: Flag = False
    """The executor isolates what it executes."""


class WorkerRuntime(OwnSection):
    """A remote process that pulls runs over HTTP."""

    type: Literal["worker"]
    """Accepted in a file; not served yet."""

    queue: NameText
    """Name of the queue."""

    models: ServedModels | None = None
    """Models that it serves."""


class OpenClawRuntime(SharedSection):
    """A runtime inside OpenClaw, accepted in the file but served by OpenClaw only."""

    type: Literal["embedded", "acp"]
    """Runtimes of OpenClaw: accepted in a file, but a spawn is refused (rule `runtime`)."""


Runtime = Annotated[
    CommandRuntime
    | ScriptedRuntime
    | ExternalRuntime
    | WorkerRuntime
    | ModelRuntime
    | OpenClawRuntime,
    Discriminator("type"),
]
SERVED_RUNTIMES = ("command", "scripted", "model", EXTERNAL)
"""Runtime types that can execute runs. A spawn with any other type is refused."""
RUNTIME_TYPES = ("command", "scripted", EXTERNAL, "worker", "model", "embedded", "acp")


def served_models_of(runtime: Runtime | None) -> tuple[str, ...] | None:
    """Return the models that a runtime declares, or None if it declares none."""
    return None if isinstance(runtime, OpenClawRuntime | None) else runtime.models


def provides_sandbox(runtime: Runtime | None) -> bool:
    """Return True if the runtime declares that it isolates its runs."""
    if not isinstance(runtime, CommandRuntime | ScriptedRuntime | ExternalRuntime):
        return False
    return runtime.provides_sandbox


def values_of(runtime: Runtime | None) -> Mapping[str, str | SecretReference]:
    """Return the values of a runtime that may contain secret references, by name.

    These are a command's environment, and the addresses and secrets of a model runtime.
    """
    match runtime:
        case CommandRuntime():
            return runtime.env
        case ModelRuntime():
            return runtime.values()
        case _:
            return {}
