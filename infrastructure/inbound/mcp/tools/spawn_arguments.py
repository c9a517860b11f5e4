"""What an agent gives to the tool `sessions_spawn`, read as leniently as agents expect of it.

A body over HTTP is strict. A model that calls a tool is answered in the words of the tool, and a
value that is no word of an option counts as if it had been left out. What spawnlog has beside
the tool of others (`contextPreamble`, `sharedContext`, `dependsOn`, …) is given on as it is, and
read as strictly as over HTTP: a name that nobody waits for must not be lost.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from domain.context.attachments import mount_path_hint
from infrastructure.inbound.mcp.tools.call import ToolInputError

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
_OWN_KEYS = (
    "contextPreamble",
    "sharedContext",
    "sharedContextScope",
    "dependsOn",
    "chainAfter",
)
_NO_ACP = (
    'runtime="acp" is unavailable in this session because no ACP runtime backend is loaded. '
    'Enable the acpx plugin or use runtime="subagent".'
)
_NO_ACP_ATTACHMENTS = (
    "attachments are currently unsupported for runtime=acp; use runtime=subagent or remove"
    " attachments"
)


@dataclass(frozen=True, slots=True)
class ToolRefusal:
    """What the tool answers to a call that asks for no spawn of ours. `role` is the agent's id that
    was asked for, None without one."""

    status: Literal["error", "forbidden"]
    error: str
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpawn:
    """A spawn as the tool was asked for it. Texts are trimmed and never blank.

    `run_timeout_seconds` is the number that was given: the plan of the child rounds and cuts it,
    and warns of that. `unused` names what was given and has no use here, so that the caller can be
    warned of it.
    """

    task: str | tuple[object, ...]
    label: str | None
    agent_id: str | None
    model: str | None
    thinking: str | None
    run_timeout_seconds: float | None
    thread: bool
    mode: Literal["run", "session"] | None
    cleanup: Literal["delete", "keep"]
    sandbox: Literal["inherit", "require"]
    context: Literal["isolated", "fork"] | None
    light_context: bool
    expects_completion_message: bool
    attachments: tuple[Mapping[str, object], ...]
    mount_path: str | None
    own: Mapping[str, object]
    unused: tuple[str, ...]

    def body(self, session_key: str) -> dict[str, object]:
        """The body of `POST /v1/spawns` that asks for the same, for a session."""
        task = self.task if isinstance(self.task, str) else list(self.task)
        given: dict[str, object | None] = {
            "label": self.label,
            "agentId": self.agent_id,
            "model": self.model,
            "thinking": self.thinking,
            "runTimeoutSeconds": self.run_timeout_seconds,
            "mode": self.mode,
            "context": self.context,
        }
        hint = self.mount_path if self.attachments else None
        return {
            "requester": {"sessionKey": session_key},
            "task": task,
            **{name: value for name, value in given.items() if value is not None},
            "thread": self.thread,
            "cleanup": self.cleanup,
            "sandbox": self.sandbox,
            "lightContext": self.light_context,
            "expectsCompletionMessage": self.expects_completion_message,
            "attachments": [_attachment_body(one) for one in self.attachments],
            **({"attachAs": {"mountPath": hint}} if hint else {}),
            **self.own,
        }


def read_tool_arguments(arguments: Mapping[str, object]) -> ToolSpawn | ToolRefusal:
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
    task = _tasks(arguments)
    if task is None:
        raise ToolInputError("task required")
    own = {key: arguments[key] for key in _OWN_KEYS if arguments.get(key) is not None}
    if arguments.get("parallel") is True:
        own["parallel"] = True
    agent_id = _text(arguments.get("agentId"))
    if arguments.get("runtime") == "acp":
        return _without_acp(arguments, agent_id)
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
        own=own,
        unused=tuple(key for key in _UNUSED_KEYS if _is_given(arguments.get(key))),
    )


def _without_acp(arguments: Mapping[str, object], agent_id: str | None) -> ToolRefusal:
    """Another runtime is not here; what it would not support is said first."""
    if arguments.get("lightContext") is True:
        raise ToolInputError("lightContext is only supported for runtime='subagent'.")
    if arguments.get("context") == "fork":
        raise ToolInputError('context="fork" is only supported for runtime="subagent".')
    error = _NO_ACP_ATTACHMENTS if _attachments(arguments.get("attachments")) else _NO_ACP
    return ToolRefusal(status="error", error=error, role=agent_id)


def _tasks(arguments: Mapping[str, object]) -> str | tuple[object, ...] | None:
    """The task, or with `parallel` those of a list; None without one."""
    task = arguments.get("task")
    if arguments.get("parallel") is True and isinstance(task, list):
        return tuple(one.strip() if isinstance(one, str) else one for one in task) or None
    return _text(task)


def with_role(answer: Mapping[str, object], agent_id: str | None) -> dict[str, object]:
    """The tool's answer; a refusal also says, as `role`, which agent was asked for."""
    asked = _text(agent_id)
    refused = answer.get("status") in ("error", "forbidden")
    return {**answer, "role": asked} if refused and asked is not None else dict(answer)


def tool_schema(*, threads: bool) -> dict[str, object]:
    """The JSON schema of the arguments; `threads` is whether a child can be bound to a thread."""
    seconds = {"type": "number", "minimum": 0}
    properties: dict[str, object] = {
        "task": {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "description": "What the sub-agent is to do. With parallel: true a list of tasks.",
        },
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
        **_OWN_SCHEMA,
    }
    return {"type": "object", "required": ["task"], "properties": properties}


_NAMED_RUN = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "require": {"type": "string", "enum": ["success", "ended"]},
            },
            "required": ["run"],
        },
    ]
}
_OWN_SCHEMA: dict[str, object] = {
    "contextPreamble": {
        "type": "string",
        "description": "What the sub-agent is to know from you; stands in front of its prompt.",
    },
    "sharedContext": {
        "type": "object",
        "description": (
            "Keys with values that all your sub-agents read from now on. A key that begins with $"
            " is given the result of the run that its value names."
        ),
    },
    "sharedContextScope": {"type": "string", "enum": ["family", "child"]},
    "dependsOn": {
        "type": "array",
        "items": _NAMED_RUN,
        "description": "Labels or ids of runs that have to be done before this one starts.",
    },
    "chainAfter": _NAMED_RUN,
    "parallel": {
        "type": "boolean",
        "description": "With a list of tasks: a run for each of them, or for none.",
    },
}


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


def _run_timeout_seconds(arguments: Mapping[str, object]) -> float | None:
    given = arguments.get("runTimeoutSeconds")
    if not _is_number(given):
        given = arguments.get("timeoutSeconds")
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        seconds = float(given)
    except OverflowError:  # An integer that as a number of JSON is infinite.
        return None
    return given if math.isfinite(seconds) else None


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
    """A hint that is none is dropped, as if it had been left out."""
    text = _text(value.get("mountPath")) if isinstance(value, Mapping) else None
    return mount_path_hint(text) if text is not None else None


def _attachment_body(one: Mapping[str, object]) -> dict[str, object]:
    """A file in the words of HTTP: another encoding than base64 is text, and a kind that is no text
    is none."""
    kind = one.get("mimeType")
    given = {name: one[name] for name in ("name", "content") if name in one}
    encoding = "base64" if one.get("encoding") == "base64" else "utf8"
    return {**given, "encoding": encoding, **({"mimeType": kind} if _text(kind) else {})}
