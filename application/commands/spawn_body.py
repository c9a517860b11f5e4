"""The body of a spawn: its shape, and the request that it becomes."""

import math
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, WithJsonSchema, field_validator

from application.commands.dependencies import (
    ChainAfterField,
    DependsOnField,
    dependency_requests,
)
from application.commands.shared_values import parse_shared_values, references_of
from application.queries.errors import QueryError, invalid_value
from application.queries.operation import Body
from application.queries.session_reference import canonical_key
from application.spawn.request import SpawnRequest
from domain.configuration.configuration import Configuration
from domain.configuration.models import is_model_name
from domain.context.attachments import (
    MOUNT_PATH_CHARACTERS_MAX,
    RequestedAttachment,
    mount_path_hint,
)
from domain.run.facts import SpawnOptions
from domain.spawn.request import TASK_BYTES_MAX, effective_cleanup, effective_mode
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import agent_id_of, render_session_key

NAME_CHARS_MAX = 256
ADDRESS_CHARS_MAX = 1024
ATTACHMENTS_MAX = 1_000
NameField = Annotated[str, Field(max_length=NAME_CHARS_MAX)]
Address = Annotated[str, Field(max_length=ADDRESS_CHARS_MAX)]


class RequesterBody(Body):
    """Who asks, and where it can be answered."""

    session_key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2048,
            description=(
                "Its key in any spelling, its session id, or `current` for the one session that the"
                " token acts for."
            ),
        ),
    ]
    channel: Address | None = None
    account_id: Address | None = None
    to: Address | None = None
    thread_id: Address | int | None = None
    group_id: Address | None = None
    group_channel: Address | None = None
    group_space: Address | None = None
    member_role_ids: Annotated[list[Address], Field(max_length=200)] = Field(default_factory=list)
    agent_id_override: NameField | None = None
    workspace_dir: Annotated[
        str | None,
        Field(
            max_length=4096,
            description=(
                "The folder it works in, as an absolute path: a child of the same agent works there"
                " too. It has to be in its folder on record; without one, in its agent's own or"
                " below `spawnlog.workspaceRoots`."
            ),
        ),
    ] = None
    sandboxed: Annotated[
        bool, Field(description="That it is in a sandbox, also when the record does not say so.")
    ] = False
    active_model: NameField | None = None
    active_thinking: Annotated[str, Field(pattern=r"^[A-Za-z_ -]{1,32}$")] | None = None

    @field_validator("active_model")
    @classmethod
    def _a_model(cls, name: str | None) -> str | None:
        if name is not None and not is_model_name(name):
            raise ValueError("must be the name of a model, such as provider/model")
        return name

    @field_validator("workspace_dir")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        if path is None or not path.strip():
            return None
        if not path.startswith("/") or not path.isprintable():
            raise ValueError("must be an absolute path without control characters")
        return path


class AttachmentBody(Body):
    """A file: its name, and its content as text or as base64."""

    name: Annotated[str, Field(max_length=4096)]
    content: str
    encoding: Literal["utf8", "base64"] = "utf8"
    mime_type: Annotated[str, Field(max_length=255, pattern=r"^[ -~]*$")] | None = None


class AttachAsBody(Body):
    """Where attachments are wanted; a hint that the child is told."""

    mount_path: str | None = None

    @field_validator("mount_path")
    @classmethod
    def _a_hint(cls, path: str | None) -> str | None:
        if path is None or not path.strip():
            return None
        hint = mount_path_hint(path)
        if hint is None:
            raise ValueError(
                f"must be a path of letters, digits and ._-/: with {MOUNT_PATH_CHARACTERS_MAX}"
                " characters at most"
            )
        return hint


def attachment_requests(files: list[AttachmentBody]) -> tuple[RequestedAttachment, ...]:
    """Return the files as the domain has them."""
    return tuple(
        RequestedAttachment(
            name=one.name, content=one.content, encoding=one.encoding, mime_type=one.mime_type
        )
        for one in files
    )


TASKS_MAX = 50
COPIES_CHARS_MAX = 32 * 1024 * 1024
LABEL_CHARS_MAX = 200
TaskField = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}]},
    ),
    Field(description="With `parallel` a list: a run for each of them, or for none."),
]


def tasks_of(
    task: object, *, parallel: bool, label: str | None, attached_characters: int
) -> tuple[str, ...]:
    """Return the tasks of a batch, none for a request with a single task; refuse tasks that cannot
    be used."""
    if isinstance(task, str):
        if parallel:
            raise invalid_value("/parallel", "needs a list of tasks")
        _must_be_tasks({"/task": task})
        return ()
    if not isinstance(task, list):
        raise invalid_value("/task", "must be a text, or a list of texts")
    if not parallel:
        raise invalid_value("/task", "a list of tasks needs parallel: true")
    if not task:
        raise invalid_value("/task", "has no task")
    if len(task) > TASKS_MAX:
        raise invalid_value("/task", f"has {len(task)} tasks and may have {TASKS_MAX}")
    for number, one in enumerate(task):
        if not isinstance(one, str):
            raise invalid_value(f"/task/{number}", "must be a text")
    _must_be_tasks({f"/task/{number}": one for number, one in enumerate(task)})
    last = f"{label}-{len(task)}" if label else ""
    if len(last) > LABEL_CHARS_MAX:
        raise invalid_value(
            "/label", f"has {len(last)} characters with its number, and may have {LABEL_CHARS_MAX}"
        )
    if attached_characters * len(task) > COPIES_CHARS_MAX:
        raise invalid_value(
            "/attachments",
            f"have {attached_characters} characters, and each of {len(task)} tasks has a copy:"
            f" {COPIES_CHARS_MAX} in all at most. Spawn with fewer tasks or smaller files",
        )
    return tuple(task)


def _must_be_tasks(tasks: dict[str, str]) -> None:
    for pointer, task in tasks.items():
        if not task.strip():
            raise invalid_value(pointer, "task required")
    if sum(len(task.encode()) for task in tasks.values()) > TASK_BYTES_MAX:
        who = "a task" if len(tasks) == 1 else "all tasks together"
        raise QueryError("too_large", f"{who} may have {TASK_BYTES_MAX} bytes at most")


REQUESTER_KEY = "/requester/sessionKey"


class SpawnBody(Body):
    """`POST /v1/spawns`."""

    requester: RequesterBody
    task: TaskField
    label: Annotated[str, Field(max_length=LABEL_CHARS_MAX)] | None = None
    agent_id: Annotated[str, Field(max_length=4096)] | None = None
    model: NameField | None = None
    thinking: NameField | None = None
    run_timeout_seconds: Annotated[
        float | None,
        Field(description="Rounded down to whole seconds; 0, or less, is without limit."),
    ] = None
    thread: Annotated[
        bool,
        Field(
            description=(
                "Bind the child to a thread of the requester's channel. `mode` is `session` then,"
                " unless it is given: the child stays and takes messages until it is stopped."
            )
        ),
    ] = False
    mode: Literal["run", "session"] | None = None
    cleanup: Literal["delete", "keep"] | None = None
    sandbox: Annotated[
        Literal["inherit", "require"],
        Field(description="`require` refuses a child that would not be in a sandbox."),
    ] = "inherit"
    context: Annotated[
        Literal["isolated", "fork"] | None,
        Field(
            description=(
                "`fork`: the child begins with the requester's conversation up to now. Only of the"
                " requester's own agent. Without it a child in a thread of a channel follows"
                " `session.threadBindings.defaultSpawnContext`, any other starts `isolated`."
            )
        ),
    ] = None
    light_context: Annotated[
        bool, Field(description="Leave the files of the agent's workspace out of the prompt.")
    ] = False
    expects_completion_message: bool = True
    attachments: Annotated[
        list[AttachmentBody],
        Field(
            max_length=ATTACHMENTS_MAX,
            description=(
                "Files that are put into the child's workspace, as far as"
                " `tools.sessions_spawn.attachments` permits; off unless it is enabled."
            ),
        ),
    ] = Field(default_factory=list)
    attach_as: AttachAsBody = Field(default_factory=AttachAsBody)
    context_preamble: str | None = None
    shared_context: Annotated[
        dict[str, Any] | None,
        Field(
            description=(
                "Keys with any values, at most 64 KiB of JSON with what the requester's session"
                " shares already. The child reads them in its prompt, as do those that are spawned"
                " by this session later, and those below it."
            )
        ),
    ] = None
    shared_context_scope: Annotated[
        Literal["family", "child"],
        Field(description="`child`: the keys are for this child, and for those below it, alone."),
    ] = "family"
    parallel: Annotated[
        bool,
        Field(
            description=(
                "Of a list of tasks: they run side by side. All runs are admitted and prepared, or"
                " none is. Their labels are `<label>-1` and so on."
            )
        ),
    ] = False
    depends_on: DependsOnField = Field(default_factory=list)
    chain_after: ChainAfterField = None

    @field_validator("label")
    @classmethod
    def _one_line(cls, label: str | None) -> str | None:
        if label is not None and not label.isprintable():
            raise ValueError("must be one line without control characters")
        return label

    @field_validator("run_timeout_seconds", mode="before")
    @classmethod
    def _a_number(cls, value: object) -> object:
        # An integer is a number too; a boolean is none.
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        return value

    @field_validator("run_timeout_seconds")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be a number of seconds, 0 for no limit")
        return value


def spawn_request(
    body: SpawnBody, configuration: Configuration, requester_key: str | None = None
) -> SpawnRequest:
    """Return the request of a body; refuse a key or a task that cannot be used.

    `requester_key` is the canonical key of a requester that was given by something else than its
    key, such as its session id.
    """
    label = (body.label or "").strip() or None
    attached = sum(len(one.content) for one in body.attachments)
    batch = tasks_of(body.task, parallel=body.parallel, label=label, attached_characters=attached)
    if body.attach_as.mount_path is not None and not body.attachments:
        raise invalid_value(
            "/attachAs/mountPath", "is for attachments: attach a file or leave it out"
        )
    session = configuration.session
    spelling = requester_key or body.requester.session_key
    key = requester_key or canonical_key(spelling, configuration, REQUESTER_KEY)
    override = (body.requester.agent_id_override or "").strip()
    if override and not is_valid_agent_id(override):
        raise invalid_value("/requester/agentIdOverride", "must match [a-z0-9][a-z0-9_-]{0,63}")
    requester_agent_id = normalise_agent_id(override) if override else agent_id_of(key)
    return SpawnRequest(
        requester_key=key,
        requester_display_key=render_session_key(
            spelling, main_key=session.main_key, scope=session.scope
        ),
        requester_agent_id=requester_agent_id,
        asserts_agent=requester_agent_id != agent_id_of(key),
        origin=_origin(body.requester),
        task=body.task if isinstance(body.task, str) else batch[0],
        preamble=body.context_preamble or None,
        label=label,
        agent_id=(body.agent_id or "").strip() or None,
        thread=body.thread,
        workspace_argument=body.requester.workspace_dir,
        attachments=attachment_requests(body.attachments),
        mount_path=body.attach_as.mount_path,
        light_context=body.light_context,
        context_argument=body.context,
        shared=parse_shared_values(body.shared_context, body.shared_context_scope),
        batch=batch,
        dependencies=dependency_requests(
            body.depends_on, body.chain_after, references_of(body.shared_context)
        ),
        options=_options(body),
    )


def _options(body: SpawnBody) -> SpawnOptions:
    mode = effective_mode(body.mode, thread=body.thread)
    return SpawnOptions(
        model=(body.model or "").strip() or None,
        thinking=(body.thinking or "").strip() or None,
        run_timeout_seconds=body.run_timeout_seconds,
        mode=mode,
        cleanup=effective_cleanup(body.cleanup, mode),
        expects_completion_message=body.expects_completion_message,
        active_model=body.requester.active_model,
        active_thinking=body.requester.active_thinking,
        sandbox=body.sandbox,
        requester_sandboxed=body.requester.sandboxed,
    )


def _origin(requester: RequesterBody) -> str | None:
    """Return the addresses of the requester as JSON text; None if it gave none."""
    names = (
        "channel",
        "account_id",
        "to",
        "thread_id",
        "group_id",
        "group_channel",
        "group_space",
        "member_role_ids",
    )
    given = {
        RequesterBody.model_fields[name].alias or name: getattr(requester, name)
        for name in names
        if getattr(requester, name) not in (None, [])
    }
    return orjson.dumps(given).decode() if given else None
