"""Read what an agent gives to the tool `sessions_spawn`, as leniently as agents expect.

A body over HTTP is strict. A model that calls a tool is answered in the words of the tool, and a
value that is no word of an option counts as if it had been left out. What spawnlog has beside
the tool of others (`contextPreamble`, `sharedContext`, `dependsOn`, …) is given on as it is, and
read as strictly as over HTTP: a name that nobody waits for must not be lost.
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
_STRICT = frozenset(
    ("contextPreamble", "sharedContext", "sharedContextScope", "dependsOn", "chainAfter")
)
"""What other tools of this name do not have, and what is refused as over HTTP if it is wrong."""
_NOT_OFFERED = frozenset(("requester", "expectsCompletionMessage"))
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
    """A spawn as the tool was asked for it.

    Attributes:
        members: Those of the body of `POST /v1/spawns` but `requester`. Texts are trimmed and never
            blank. `runTimeoutSeconds` is the number that was given: the plan of the child rounds
            and cuts it, and warns of that.
        unused: Names of what was given and has no use here, so that the caller can be warned.
    """

    members: Mapping[str, Any]
    unused: tuple[str, ...]

    @property
    def agent_id(self) -> str | None:
        """The agent that was asked for."""
        agent_id: str | None = self.members.get("agentId")
        return agent_id

    def body(self, session_key: str) -> dict[str, object]:
        """Return the body of `POST /v1/spawns` that asks for the same, for a session."""
        return {"requester": {"sessionKey": session_key}, **self.members}


def read_tool_arguments(arguments: Mapping[str, object]) -> ToolSpawn | ToolRefusal:
    """Read the arguments of one call. Answer at once if another runtime than ours is asked for.

    Raises:
        ToolInputError: A key of channel delivery is there at all; else there is no task; else
            `attachments` is no list of at most 50 objects.
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
        if name != "requester" and (value := _lenient(name, schema, given.get(name))) is not None
    }
    unused = tuple(key for key in _UNUSED_KEYS if _is_given(arguments.get(key)))
    return ToolSpawn(members=members, unused=unused)


def _lenient(name: str, schema: Mapping[str, Any], value: object) -> object:
    """Return the value if it is one of the member, else None."""
    if name in _STRICT or schema.get("type") in ("array", "object") or "anyOf" in schema:
        return value
    if "enum" in schema:
        return value if isinstance(value, str) and value in schema["enum"] else None
    if schema["type"] == "boolean":
        return value if isinstance(value, bool) else None
    return _number(value) if schema["type"] == "number" else _text(value)


def _without_acp(arguments: Mapping[str, object], agent_id: str | None) -> ToolRefusal:
    """Another runtime is not here; what it would not support is said first."""
    if arguments.get("lightContext") is True:
        raise ToolInputError("lightContext is only supported for runtime='subagent'.")
    if arguments.get("context") == "fork":
        raise ToolInputError('context="fork" is only supported for runtime="subagent".')
    error = _NO_ACP_ATTACHMENTS if _attachments(arguments.get("attachments")) else _NO_ACP
    return ToolRefusal(status="error", error=error, role=agent_id)


def _tasks(arguments: Mapping[str, object]) -> str | list[object] | None:
    """Return the task, or with `parallel` those of a list; None without one."""
    task = arguments.get("task")
    if arguments.get("parallel") is True and isinstance(task, list):
        return [one.strip() if isinstance(one, str) else one for one in task] or None
    return _text(task)


def with_role(answer: Mapping[str, object], agent_id: str | None) -> dict[str, object]:
    """The tool's answer; a refusal also says, as `role`, which agent was asked for."""
    asked = _text(agent_id)
    refused = answer.get("status") in ("error", "forbidden")
    return {**answer, "role": asked} if refused and asked is not None else dict(answer)


_SECONDS = {"type": "number", "minimum": 0}
_WORDS: Mapping[str, Mapping[str, Any]] = {
    "task": {"description": "What the sub-agent is to do. With parallel: true a list of tasks."},
    "runTimeoutSeconds": _SECONDS,
    "attachments": {"maxItems": ATTACHMENTS_MAX},
    "contextPreamble": {
        "description": "What the sub-agent is to know from you; stands in front of its prompt.",
    },
    "sharedContext": {
        "description": (
            "Keys with values that all your sub-agents read from now on. A key that begins with $"
            " is given the result of the run that its value names."
        ),
    },
    "dependsOn": {
        "description": "Labels or ids of runs that have to be done before this one starts.",
    },
    "parallel": {"description": "With a list of tasks: a run for each of them, or for none."},
}
"""What a model is told of a member, beside its type."""


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
    """The members of the body of a spawn, by name: their types alone, without null and limits."""
    whole = SpawnRequest.model_json_schema(by_alias=True)
    properties = whole["properties"].items()
    return {name: _type_of(schema, whole["$defs"]) for name, schema in properties}


def _type_of(schema: Mapping[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return _type_of(models[schema["$ref"].rsplit("/", 1)[1]], models)
    one_of = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(one_of) == 1:
        return _type_of(one_of[0], models)
    kept = {name: schema[name] for name in ("type", "enum", "required") if name in schema}
    if one_of:
        kept["anyOf"] = [_type_of(one, models) for one in one_of]
    if "items" in schema:
        kept["items"] = _type_of(schema["items"], models)
    if "properties" in schema:
        inner = schema["properties"].items()
        kept["properties"] = {name: _type_of(one, models) for name, one in inner}
    return kept


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _is_given(value: object) -> bool:
    return _text(value) is not None if isinstance(value, str) else value is not None


def _number(value: object) -> int | float | None:
    """Return a number that JSON has; an integer that is infinite there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(float(value)) else None
    except OverflowError:
        return None


def _attachments(value: object) -> list[dict[str, object]]:
    """Read what is attached, which is never left out in silence, as an option may be."""
    if value is None:
        return []
    if not isinstance(value, list | tuple) or len(value) > ATTACHMENTS_MAX:
        raise ToolInputError(_not_attachments())
    attached = [_attachment_body(one) for one in value if isinstance(one, Mapping)]
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
