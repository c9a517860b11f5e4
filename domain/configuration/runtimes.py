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
    """Starts a program for each run."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Program and its arguments; no shell is involved. Example: `["my-agent", "--print",
    "{prompt}"]`
    """

    input: Literal["stdin-json", "stdin-text", "argv"] = "stdin-json"
    """How the program gets its prompt: as a JSON object or as text on standard input, or as an
    argument (`argv`), in place of `{prompt}` in `command`.
    """

    output: Literal["text", "jsonl"] = "text"
    """How its output is read. `text`: the output is the result. `jsonl`: each line is an entry of
    the transcript.
    """

    cwd: NameText | None = None
    """Working folder of the program, relative to the workspace. Unset: the workspace."""

    env: dict[Text, SecretText] = Field(default_factory=dict, repr=False)
    """Environment variables of the program. Example: `{ API_KEY: "${API_KEY}" }`"""

    models: ServedModels | None = None
    """Models that the program serves; others are skipped, with a warning. Unset: any. Example:
    `["openai/*"]`
    """

    provides_sandbox: Flag = False
    """Set to true if the program runs in a sandbox; spawnlog does not provide one."""

    delivers_to_origin: Flag = False
    """Set to true if the program itself sends results to the thread of its session; they are then
    not announced as well.
    """

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
    """Input of the tool, as any JSON value."""

    output: Any = None
    """Output of the tool, as any JSON value."""


class TokenUsage(OwnSection):
    """Token counts to play back."""

    input_tokens: TokenCount = 0
    """Number of input tokens."""

    output_tokens: TokenCount = 0
    """Number of output tokens."""

    cache_read_tokens: TokenCount = 0
    """Number of tokens read from a cache."""

    cache_write_tokens: TokenCount = 0
    """Number of tokens written to a cache."""

    model: Text | None = None
    """Model that used the tokens. Example: `"openai/gpt-5"`"""


class ScriptedStep(OwnSection):
    """One step of playback: wait `after_ms` milliseconds, then do at most one thing.

    A step that names nothing is a pause.
    """

    after_ms: Milliseconds = 0
    """Milliseconds to wait before the step."""

    message: Text | None = None
    """Message from the agent. Example: `"Half way."`"""

    tool: ToolCall | None = None
    """Tool call to play back."""

    usage: TokenUsage | None = None
    """Token counts to report."""

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
    """Steps, in order. A step has at most one of `message`, `tool` and `usage`."""

    result: Text | None = None
    """Result text of the run. Example: `"Done."`"""

    outcome: Literal["success", "error", "timeout", "unknown"] = "success"
    """Outcome of the run."""

    error: Text | None = None
    """Error text. Requires another `outcome` than `success`."""

    models: ServedModels | None = None
    """Models that the runtime serves; others are skipped, with a warning. Unset: any."""

    provides_sandbox: Flag = False
    """If true, counts as a sandbox."""

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
    """Waits for an executor that claims the run over HTTP."""

    models: ServedModels | None = None
    """Models that the executor serves; others are skipped, with a warning. Unset: any."""

    provides_sandbox: Flag = False
    """Set to true if the executor runs children in a sandbox."""


class WorkerRuntime(OwnSection):
    """A remote process that pulls runs over HTTP."""

    type: Literal["worker"]
    """Accepted in a file, but not served yet: a spawn is refused (rule `runtime`)."""

    queue: NameText
    """Queue from which a worker would take runs."""

    models: ServedModels | None = None
    """Models that a worker would serve."""


class OpenClawRuntime(SharedSection):
    """A runtime inside OpenClaw, accepted in the file but served by OpenClaw only."""

    type: Literal["embedded", "acp"]
    """Runtime of OpenClaw: accepted in a file, but a spawn is refused (rule `runtime`)."""


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
