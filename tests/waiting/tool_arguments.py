"""What an agent gives to the tool `sessions_spawn`, read as leniently as agents expect of it.

A body over HTTP is strict. A model that calls a tool is answered in the words of the tool, and a
value that is no word of an option counts as if it had been left out.

Nothing serves the tool yet: this returns to the product with the MCP door.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ATTACHMENTS_MAX = 50

_DELIVERY_KEYS = (
    "target",
    "transport",
    "channel",
    "to",
    "threadId",
    "thread_id",
    "replyTo",
    "reply_to",
)
_UNUSED_KEYS = ("streamTo", "resumeSessionId", "cwd")
_NO_ACP = (
    'runtime="acp" is unavailable in this session because no ACP runtime backend is loaded. '
    'Enable the acpx plugin or use runtime="subagent".'
)


class ToolInputError(ValueError):
    """The call cannot be read; the message is what the tool throws."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The tool's answer to a call that asks for no spawn of ours. `role` is the agent's id that
    was asked for, None without one."""

    status: Literal["error", "forbidden"]
    error: str
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpawn:
    """A spawn as the tool was asked for it. Texts are trimmed and never blank.

    `run_timeout_seconds` is whole and not negative. `unused` names what was given and has no use
    here, so that the caller can be warned of it.
    """

    task: str
    label: str | None
    agent_id: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: int | None
    thread: bool
    mode: Literal["run", "session"] | None
    cleanup: Literal["delete", "keep"]
    sandbox: Literal["inherit", "require"]
    context: Literal["isolated", "fork"] | None
    light_context: bool
    expects_completion_message: bool
    attachments: tuple[Mapping[str, object], ...]
    mount_path: str | None
    unused: tuple[str, ...]


def read_tool_arguments(arguments: Mapping[str, object]) -> ToolSpawn | ToolAnswer:
    """The arguments of one call, coerced.

    Raises `ToolInputError` when a key of channel delivery is there at all, then when there is no
    task, last when `attachments` is no list of at most 50 objects. Answers at once when another
    runtime than ours is asked for.
    """
    for key in _DELIVERY_KEYS:
        if key in arguments:
            raise ToolInputError(
                f'sessions_spawn does not support "{key}". Use "message" or "sessions_send" for '
                "channel delivery."
            )
    task = _text(arguments.get("task"))
    if task is None:
        raise ToolInputError("task required")
    agent_id = _text(arguments.get("agentId"))
    if arguments.get("runtime") == "acp":
        return ToolAnswer(status="error", error=_NO_ACP, role=agent_id)
    return ToolSpawn(
        task=task,
        label=_text(arguments.get("label")),
        agent_id=agent_id,
        model=_text(arguments.get("model")),
        thinking=_text(arguments.get("thinking")),
        run_timeout_seconds=_run_timeout_seconds(arguments),
        thread=arguments.get("thread") is True,
        mode=_mode(arguments.get("mode")),
        cleanup="delete" if arguments.get("cleanup") == "delete" else "keep",
        sandbox="require" if arguments.get("sandbox") == "require" else "inherit",
        context=_context(arguments.get("context")),
        light_context=arguments.get("lightContext") is True,
        expects_completion_message=arguments.get("expectsCompletionMessage") is not False,
        attachments=_attachments(arguments.get("attachments")),
        mount_path=_mount_path(arguments.get("attachAs")),
        unused=tuple(key for key in _UNUSED_KEYS if _is_given(arguments.get(key))),
    )


def with_role(answer: Mapping[str, object], agent_id: str | None) -> dict[str, object]:
    """The tool's answer; a refusal also says, as `role`, which agent was asked for."""
    asked = _text(agent_id)
    refused = answer.get("status") in ("error", "forbidden")
    return {**answer, "role": asked} if refused and asked is not None else dict(answer)


def tool_schema(*, threads: bool) -> dict[str, object]:
    """The JSON schema of the arguments; `threads` is whether a child can be bound to a thread."""
    seconds = {"type": "number", "minimum": 0}
    properties: dict[str, object] = {
        "task": {"type": "string"},
        "label": {"type": "string"},
        "runtime": _one_of("subagent"),
        "agentId": {"type": "string"},
        "model": {"type": "string"},
        "thinking": {"type": "string"},
        "cwd": {"type": "string"},
        "runTimeoutSeconds": seconds,
        "timeoutSeconds": dict(seconds),
        **({"thread": {"type": "boolean"}} if threads else {}),
        "mode": _one_of("run", "session") if threads else _one_of("run"),
        "cleanup": _one_of("delete", "keep"),
        "sandbox": _one_of("inherit", "require"),
        "context": _one_of("isolated", "fork"),
        "lightContext": {"type": "boolean"},
        "attachments": {"type": "array", "maxItems": ATTACHMENTS_MAX, "items": _attachment()},
        "attachAs": {"type": "object", "properties": {"mountPath": {"type": "string"}}},
    }
    return {"type": "object", "required": ["task"], "properties": properties}


def _one_of(*words: str) -> dict[str, object]:
    return {"type": "string", "enum": list(words)}


def _attachment() -> dict[str, object]:
    return {
        "type": "object",
        "required": ["name", "content"],
        "properties": {
            "name": {"type": "string"},
            "content": {"type": "string"},
            "encoding": _one_of("utf8", "base64"),
            "mimeType": {"type": "string"},
        },
    }


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _is_given(value: object) -> bool:
    return _text(value) is not None if isinstance(value, str) else value is not None


def _mode(value: object) -> Literal["run", "session"] | None:
    if value == "run":
        return "run"
    return "session" if value == "session" else None


def _context(value: object) -> Literal["isolated", "fork"] | None:
    if value == "fork":
        return "fork"
    return "isolated" if value == "isolated" else None


def _run_timeout_seconds(arguments: Mapping[str, object]) -> int | None:
    given = arguments.get("runTimeoutSeconds")
    if not _is_number(given):
        given = arguments.get("timeoutSeconds")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        seconds = float(given)
    except OverflowError:  # An integer that as a number of JSON is infinite.
        return None
    return max(0, math.floor(given)) if math.isfinite(seconds) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _attachments(value: object) -> tuple[Mapping[str, object], ...]:
    """What is attached is never left out in silence, as an option may be."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > ATTACHMENTS_MAX:
        raise ToolInputError(_not_attachments())
    attached = tuple(one for one in value if isinstance(one, Mapping))
    if len(attached) != len(value):
        raise ToolInputError(_not_attachments())
    return attached


def _not_attachments() -> str:
    return (
        f"attachments must be a list of at most {ATTACHMENTS_MAX} objects, each with name and "
        "content"
    )


def _mount_path(value: object) -> str | None:
    return _text(value.get("mountPath")) if isinstance(value, Mapping) else None
