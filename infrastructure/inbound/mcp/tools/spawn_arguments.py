"""Lenient reading of the arguments of `sessions_spawn`.

A body over HTTP is strict. A call of this tool is answered in the tool's own words, and an option
with an unknown value counts as missing. Members that only spawnlog has (`contextPreamble`,
`sharedContext`, `dependsOn`, …) are read as strictly as over HTTP: a dropped dependency, for
example, would start a run too early.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from domain.context.attachments import mount_path_hint
from domain.spawn.request import SpawnRequest
from infrastructure.inbound.mcp.tools.call import ToolInputError

ATTACHMENTS_MAX = 50

DELIVERY_KEYS = (
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
_STRICT = frozenset(
    ("contextPreamble", "sharedContext", "sharedContextScope", "dependsOn", "chainAfter")
)
"""Members that other tools of this name do not have; a wrong value is refused as over HTTP."""
_REQUESTER, _EXPECTS_MESSAGE = "requester", "expectsCompletionMessage"
_NOT_OFFERED = frozenset((_REQUESTER, _EXPECTS_MESSAGE))
ALSO_READ = (_EXPECTS_MESSAGE, *_UNUSED_KEYS)
"""Arguments that are accepted and not offered."""
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
    """Answer to a call that asks for another runtime. `role` is the requested agent id, if any."""

    status: Literal["error", "forbidden"]
    error: str
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpawn:
    """A spawn as the tool was asked for it.

    Attributes:
        members: The body of `POST /v1/spawns` without `requester`. Texts are trimmed and not blank.
            `runTimeoutSeconds` is the given number: the plan of the child rounds and caps it, and
            warns.
        unused: Names of arguments that have no effect here; the caller is warned.
    """

    members: Mapping[str, Any]
    unused: tuple[str, ...]

    @property
    def agent_id(self) -> str | None:
        """Return the requested agent."""
        agent_id: str | None = self.members.get("agentId")
        return agent_id

    def body(self, session_key: str) -> dict[str, object]:
        """Return the equivalent body of `POST /v1/spawns` for a session."""
        return {"requester": {"sessionKey": session_key}, **self.members}


def read_tool_arguments(arguments: Mapping[str, object]) -> ToolSpawn | ToolRefusal:
    """Read the arguments of one call. Return a refusal if another runtime is requested.

    Raises:
        ToolInputError: In this order: a key of channel delivery is given, there is no task, or
            `attachments` is not a list of at most 50 objects.
    """
    for key in DELIVERY_KEYS:
        if key in arguments:
            raise ToolInputError(
                f'sessions_spawn does not support "{key}". Use "message" or "sessions_send" for '
                "channel delivery."
            )
    task = _tasks(arguments)
    if task is None:
        raise ToolInputError("task required")
    if arguments.get("runtime") == "acp":
        return _without_acp(arguments, _text(arguments.get("agentId")))
    seconds = _number(arguments.get("runTimeoutSeconds"))
    given = {
        **arguments,
        "task": task,
        "runTimeoutSeconds": arguments.get("timeoutSeconds") if seconds is None else seconds,
        "parallel": True if arguments.get("parallel") is True else None,
        "attachments": _attachments(arguments.get("attachments")),
    }
    hint = _mount_path(arguments.get("attachAs")) if given["attachments"] else None
    given["attachAs"] = {"mountPath": hint} if hint else None
    members = {
        name: value
        for name, schema in _body_schema().items()
        if name != _REQUESTER and (value := _lenient(name, schema, given.get(name))) is not None
    }
    unused = tuple(key for key in _UNUSED_KEYS if _is_given(arguments.get(key)))
    return ToolSpawn(members=members, unused=unused)


def _lenient(name: str, schema: Mapping[str, Any], value: object) -> object:
    """Return the value if it is valid for the member, else None."""
    if name in _STRICT or schema.get("type") in ("array", "object") or "anyOf" in schema:
        return value
    if "enum" in schema:
        return value if isinstance(value, str) and value in schema["enum"] else None
    if schema["type"] == "boolean":
        return value if isinstance(value, bool) else None
    return _number(value) if schema["type"] == "number" else _text(value)


def _without_acp(arguments: Mapping[str, object], agent_id: str | None) -> ToolRefusal:
    """Return the refusal of another runtime. Refuse options that it would not support first."""
    if arguments.get("lightContext") is True:
        raise ToolInputError("lightContext is only supported for runtime='subagent'.")
    if arguments.get("context") == "fork":
        raise ToolInputError('context="fork" is only supported for runtime="subagent".')
    error = _NO_ACP_ATTACHMENTS if _attachments(arguments.get("attachments")) else _NO_ACP
    return ToolRefusal(status="error", error=error, role=agent_id)


def _tasks(arguments: Mapping[str, object]) -> str | list[object] | None:
    """Return the task, or the tasks of a list if `parallel` is true. None if there is none."""
    task = arguments.get("task")
    if arguments.get("parallel") is True and isinstance(task, list):
        return [item.strip() if isinstance(item, str) else item for item in task] or None
    return _text(task)


def with_role(answer: Mapping[str, object], agent_id: str | None) -> dict[str, object]:
    """Add the requested agent as `role` to a refusal. Other answers are returned unchanged."""
    role = _text(agent_id)
    refused = answer.get("status") in ("error", "forbidden")
    return {**answer, "role": role} if refused and role is not None else dict(answer)


_SECONDS = {"type": "number", "minimum": 0}
_WORDS: Mapping[str, Mapping[str, Any]] = {
    "task": {"description": "Task of the sub-agent, or with parallel: true a list of tasks."},
    "runTimeoutSeconds": _SECONDS,
    "attachments": {"maxItems": ATTACHMENTS_MAX},
    "contextPreamble": {
        "description": "Context from you, placed before the sub-agent's prompt.",
    },
    "sharedContext": {
        "description": (
            "Keys and values for all sub-agents that you spawn from now on. A key that begins with"
            " $ gets the result of the run that its value names."
        ),
    },
    "dependsOn": {
        "description": "Labels or ids of runs that must be done before this one starts.",
    },
    "parallel": {"description": "With a list of tasks: start one run per task, or none at all."},
}
"""Description and limits of a member, added to its type."""


def tool_schema(*, threads: bool) -> dict[str, object]:
    """Return the JSON schema of the arguments.

    Args:
        threads: True if a child can be bound to a thread.
    """
    properties: dict[str, Any] = {
        name: {**schema, **_WORDS.get(name, {})}
        for name, schema in _body_schema().items()
        if name not in _NOT_OFFERED and (threads or name != "thread")
    }
    if not threads:
        properties["mode"] = {"type": "string", "enum": ["run"]}
    properties |= {
        "runtime": {"type": "string", "enum": ["subagent"]},
        "cwd": {"type": "string"},
        "timeoutSeconds": _SECONDS,
    }
    return {"type": "object", "required": ["task"], "properties": properties}


@cache
def _body_schema() -> Mapping[str, Mapping[str, Any]]:
    """Return the types of a spawn body's members, by name, without null and limits."""
    whole = SpawnRequest.model_json_schema(by_alias=True)
    properties = whole["properties"].items()
    return {name: _type_of(schema, whole["$defs"]) for name, schema in properties}


def _type_of(schema: Mapping[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _type_of(models[schema["$ref"].rsplit("/", 1)[1]], models)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return _type_of(choices[0], models)
    kept = {name: schema[name] for name in ("type", "enum", "required") if name in schema}
    if choices:
        kept["anyOf"] = [_type_of(choice, models) for choice in choices]
    if "items" in schema:
        kept["items"] = _type_of(schema["items"], models)
    if "properties" in schema:
        inner = schema["properties"].items()
        kept["properties"] = {name: _type_of(member, models) for name, member in inner}
    return kept


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _is_given(value: object) -> bool:
    return _text(value) is not None if isinstance(value, str) else value is not None


def _number(value: object) -> int | float | None:
    """Return the value if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(float(value)) else None
    except OverflowError:
        return None


def _attachments(value: object) -> list[dict[str, object]]:
    """Return the attachments. Refuse a wrong value: files must not be dropped silently."""
    if value is None:
        return []
    if not isinstance(value, list | tuple) or len(value) > ATTACHMENTS_MAX:
        raise ToolInputError(_not_attachments())
    attached = [_attachment_body(file) for file in value if isinstance(file, Mapping)]
    if len(attached) != len(value):
        raise ToolInputError(_not_attachments())
    return attached


def _not_attachments() -> str:
    return (
        f"attachments must be a list of at most {ATTACHMENTS_MAX} objects, each with name and "
        "content"
    )


def _mount_path(value: object) -> str | None:
    """Return the mount path, or None if the hint is not a text or not a path."""
    text = _text(value.get("mountPath")) if isinstance(value, Mapping) else None
    return mount_path_hint(text) if text is not None else None


def _attachment_body(file: Mapping[str, object]) -> dict[str, object]:
    """Return an attachment in the form of HTTP.

    Any encoding but base64 means text. A media type that is not a text is dropped.
    """
    kind = file.get("mimeType")
    given = {name: file[name] for name in ("name", "content") if name in file}
    encoding = "base64" if file.get("encoding") == "base64" else "utf8"
    return {**given, "encoding": encoding, **({"mimeType": kind} if _text(kind) else {})}
