"""Request for a sub-agent: as given, with its names resolved, and as a command."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints
from uuid import UUID

from msgspec.structs import fields
from pydantic import Field, WithJsonSchema, create_model, field_validator

from domain.configuration.models import is_model_name
from domain.context.attachments import (
    MOUNT_PATH_CHARACTERS_MAX,
    RequestedAttachment,
    mount_path_hint,
)
from domain.run.facts import (
    BatchFacts,
    Cleanup,
    Dependency,
    GivenOptions,
    RespawnFacts,
    SpawnMode,
    SpawnOptions,
)
from domain.run.state import Run
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.dependency_rules import WAITS, DependencyFacts
from domain.values.body import Body
from domain.values.json_text import compact_json
from domain.values.record import ContentRef
from domain.values.refusals import Refusal
from domain.values.rules import RefusalStatus, first_refusal
from domain.values.shared_values import ReferenceRequest, SharedScope

TASK_BYTES_MAX = 8 * 1024 * 1024
"""Limit for a task, for all tasks of a batch together, and for a message."""
NAME_CHARS_MAX = 256
LABEL_CHARS_MAX = 200
ADDRESS_CHARS_MAX = 1024
ATTACHMENTS_MAX = 1_000
DEPENDENCIES_MAX = 20
DEPENDENCY_CHARS_MAX = 200
StoreText = Callable[[str, str], ContentRef]
"""Stores a text (kind, text) beside the log and returns the reference for an event."""


# The body of `POST /v1/spawns`; the MCP tool and other commands build the same body.


NameField = Annotated[str, Field(max_length=NAME_CHARS_MAX)]
Address = Annotated[str, Field(max_length=ADDRESS_CHARS_MAX)]
ADDRESS_FIELDS = (
    "channel",
    "account_id",
    "to",
    "thread_id",
    "group_id",
    "group_channel",
    "group_space",
    "member_role_ids",
)


class RequesterBody(Body):
    """Requesting session, and the addresses for its answers."""

    session_key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=2048,
            description=(
                "The session key in any spelling, the session id, or `current` for the session that"
                " the token acts for."
            ),
        ),
    ]
    channel: Annotated[
        Address | None, Field(description="Channel of the requester, such as `slack`.")
    ] = None
    account_id: Annotated[Address | None, Field(description="Account on the channel.")] = None
    to: Annotated[Address | None, Field(description="Address on the channel.")] = None
    thread_id: Annotated[Address | int | None, Field(description="Thread on the channel.")] = None
    group_id: Annotated[Address | None, Field(description="Group on the channel.")] = None
    group_channel: Annotated[Address | None, Field(description="Channel of the group.")] = None
    group_space: Annotated[Address | None, Field(description="Space of the group.")] = None
    member_role_ids: Annotated[
        list[Address], Field(max_length=200, description="Roles of the requester in the group.")
    ] = Field(default_factory=list)
    agent_id_override: Annotated[
        NameField | None,
        Field(description="Agent of the requester, if it differs from the agent in its key."),
    ] = None
    workspace_dir: Annotated[
        str | None,
        Field(
            max_length=4096,
            description=(
                "The requester's folder, as an absolute path. A child of the same agent works there"
                " too. It must be inside the recorded folder of the session; if none is recorded,"
                " inside its agent's folder or below `spawnlog.workspaceRoots`."
            ),
        ),
    ] = None
    sandboxed: Annotated[
        bool, Field(description="Treat the requester as sandboxed even if it is not recorded so.")
    ] = False
    active_model: Annotated[
        NameField | None,
        Field(description="Current model of the requester, for a child of the same agent."),
    ] = None
    active_thinking: Annotated[
        Annotated[str, Field(pattern=r"^[A-Za-z_ -]{1,32}$")] | None,
        Field(
            description="Current thinking level of the requester, for a child of the same agent."
        ),
    ] = None

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

    @property
    def origin(self) -> str | None:
        """Return the given addresses as JSON text, or None if there are none."""
        given = {
            type(self).model_fields[name].alias: value
            for name in ADDRESS_FIELDS
            if (value := getattr(self, name)) not in (None, [])
        }
        return compact_json(given) if given else None


class AttachmentBody(Body):
    """Attached file: name, and content as text or base64."""

    name: Annotated[str, Field(max_length=4096, description="File name, without a path.")]
    content: Annotated[str, Field(description="Content, in the encoding `encoding`.")]
    encoding: Annotated[
        Literal["utf8", "base64"],
        Field(description="`utf8`: `content` is the text. `base64`: `content` is encoded bytes."),
    ] = "utf8"
    mime_type: Annotated[
        Annotated[str, Field(max_length=255, pattern=r"^[ -~]*$")] | None,
        Field(description="MIME type; stored with the run, and not used."),
    ] = None


class AttachAsBody(Body):
    """Hint for the child where to look for attachments."""

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


TaskField = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}]},
    ),
    Field(description="The task. With `parallel`, a list of tasks: one run for each, or none."),
]


DEPENDENCY_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": DEPENDENCY_CHARS_MAX},
        {
            "type": "object",
            "properties": {
                "run": {"type": "string", "minLength": 1, "maxLength": DEPENDENCY_CHARS_MAX},
                "require": {"enum": ["success", "ended"], "default": "success"},
            },
            "required": ["run"],
            "additionalProperties": False,
        },
    ]
}
DependencyField = Annotated[Any, WithJsonSchema(DEPENDENCY_SCHEMA)]
DependsOnField = Annotated[
    list[DependencyField],
    Field(
        max_length=DEPENDENCIES_MAX,
        description=(
            "Earlier runs of the same tree to wait for, by label or id. The child is prepared at"
            " once, and queued when all of them have ended with `success` and their descendants are"
            ' done. With `{"run": …, "require": "ended"}`, any outcome will do.'
        ),
    ),
]
ChainAfterField = Annotated[
    Any,
    WithJsonSchema({"anyOf": [*DEPENDENCY_SCHEMA["anyOf"], {"type": "null"}]}),
    Field(description="One more run to wait for, as in `dependsOn`."),
]


def _trimmed(text: str | None) -> str | None:
    return (text or "").strip() or None


class _AskedFor(Body):
    requester: RequesterBody
    task: TaskField
    label: Annotated[
        Annotated[str, Field(max_length=LABEL_CHARS_MAX)] | None,
        Field(description="Label of the run, one line, by which others can name it."),
    ] = None
    agent_id: Annotated[
        Annotated[str, Field(max_length=4096)] | None,
        Field(
            description=(
                "The agent that runs the child, or an alias of it. Default: the requester's agent."
            )
        ),
    ] = None
    model: Annotated[
        NameField | None,
        Field(description="The model, as `provider/name`. Default: as configured."),
    ] = None
    thinking: Annotated[
        NameField | None,
        Field(
            description=(
                "The thinking level: `off`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or"
                " `adaptive`. Default: as configured."
            )
        ),
    ] = None


if TYPE_CHECKING:

    class _Given(Body): ...

else:
    _Given = create_model(
        "_Given",
        __base__=Body,
        **{
            field.name: (hint, field.default)
            for field, hint in zip(
                fields(GivenOptions),
                get_type_hints(GivenOptions, include_extras=True).values(),
                strict=True,
            )
        },
    )


class SpawnRequest(_Given, _AskedFor):
    """Body of `POST /v1/spawns`."""

    thread: Annotated[
        bool,
        Field(
            description=(
                "Bind the child to a thread of the requester's channel. `mode` then defaults to"
                " `session`: the child stays open and takes messages until it is stopped."
            )
        ),
    ] = False
    mode: Annotated[
        Literal["run", "session"] | None,
        Field(description="`run`: one run. `session`: a session that stays; requires `thread`."),
    ] = None
    cleanup: Annotated[
        Literal["delete", "keep"] | None,
        Field(
            description=(
                "`delete`: archive the session right after the announcement. `keep` (default):"
                " archive it later."
            )
        ),
    ] = None
    attachments: Annotated[
        list[AttachmentBody],
        Field(
            max_length=ATTACHMENTS_MAX,
            description=(
                "Files to put into the child's workspace, within the limits of"
                " `tools.sessions_spawn.attachments`. Refused unless enabled there."
            ),
        ),
    ] = Field(default_factory=list)
    attach_as: Annotated[
        AttachAsBody, Field(description="Path where the child's prompt says to find the files.")
    ] = Field(default_factory=AttachAsBody)
    context_preamble: Annotated[
        str | None, Field(description="Text to put in front of the child's system prompt.")
    ] = None
    shared_context: Annotated[
        dict[str, Any] | None,
        Field(
            description=(
                "Keys and JSON values, at most 64 KiB together with those that the requester's"
                " session shares already. They are added to the prompts of the child, of later"
                " children of this session, and of their descendants."
            )
        ),
    ] = None
    shared_context_scope: Annotated[
        Literal["family", "child"],
        Field(description="`child`: share the keys only with this child and its descendants."),
    ] = "family"
    parallel: Annotated[
        bool,
        Field(
            description=(
                "Run a list of tasks in parallel. Either all runs are admitted and prepared, or"
                " none is. They are labeled `<label>-1`, `<label>-2` and so on."
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
        return _trimmed(label)

    @field_validator("agent_id", "model", "thinking")
    @classmethod
    def _without_blanks(cls, text: str | None) -> str | None:
        return _trimmed(text)

    @field_validator("run_timeout_seconds", mode="before")
    @classmethod
    def _a_number(cls, value: object) -> object:
        # Accept integers, but not booleans, which are integers in Python.
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        return value

    @field_validator("run_timeout_seconds")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be a number of seconds, 0 for no limit")
        return value

    @property
    def files(self) -> tuple[RequestedAttachment, ...]:
        """Return the attached files."""
        return tuple(
            RequestedAttachment(
                name=file.name,
                content=file.content,
                encoding=file.encoding,
                mime_type=file.mime_type,
            )
            for file in self.attachments
        )

    def options(self, *, model: str | None, thinking: str | None) -> SpawnOptions:
        """Return the options of its runs.

        Args:
            model: The model name, if the given text is one.
            thinking: The thinking level, if the given text is one.
        """
        mode = effective_mode(self.mode, thread=self.thread)
        given: Any = {name: getattr(self, name) for name in GivenOptions.__struct_fields__}
        return SpawnOptions(
            **given,
            model=model,
            thinking=thinking,
            mode=mode,
            cleanup=effective_cleanup(self.cleanup, mode),
            active_model=self.requester.active_model,
            active_thinking=self.requester.active_thinking,
            requester_sandboxed=self.requester.sandboxed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedContextInput:
    """Shared context of a request: keys with compact JSON values, and references to results."""

    values: tuple[tuple[str, str], ...] = ()
    scope: SharedScope = "family"
    references: tuple[ReferenceRequest, ...] = ()

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Return each key with the size of its value in bytes."""
        return [(key, len(text.encode())) for key, text in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpawn:
    """Request with its names resolved.

    Attributes:
        request: The request as given.
        requester_key: The canonical key of the requesting session.
        requester_display_key: The key as shown to users.
        requester_agent_id: The requester's agent, as recorded or as stated by the request.
        asserts_agent: True if that is another agent than the one in the key.
        tasks: One task for each requested run.
        shared: The shared values; None if there are none.
        dependencies: The runs to wait for, by name.
        respawn: The earlier run that the request was made from, if any.
    """

    request: SpawnRequest
    requester_key: str
    requester_display_key: str
    requester_agent_id: str
    asserts_agent: bool = False
    tasks: tuple[str, ...]
    shared: SharedContextInput | None = None
    dependencies: tuple[DependencyRequest, ...] = ()
    respawn: RespawnFacts | None = None


# The request for one run as a command.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentsVerdict:
    """Result of checking the files of a request: their manifest as text, or the refusal."""

    count: int
    total_bytes: int = 0
    mount_path_hint: str | None = None
    retain: bool = False
    manifest: str | None = None
    refusal: str | None = None
    refusal_status: RefusalStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpawn:
    """Command to spawn one run, made from a well-formed request.

    Attributes:
        asserts_agent: True if only the request vouches for the requester's agent. This counts only
            for a session that is seen for the first time.
        requester_in_sandbox: Whether the configuration puts the requester into a sandbox now.
        unbound: The refusal if a dependency name matches no run, or several.
        dependencies_argument: In that case, all names as given (`dependencies_text`).
    """

    run_id: UUID
    session_id: UUID
    requester_key: str
    requester_display_key: str
    requester_agent_id: str
    requester_session_id: UUID
    asserted_by: str
    asserts_agent: bool = False
    requester_in_sandbox: bool = False
    agent_id_argument: str | None
    target_agent_id: str | None
    label: str | None
    task: str
    preamble: str | None
    model_argument: str | None = None
    thinking_argument: str | None = None
    workspace_argument: str | None = None
    attachments: AttachmentsVerdict | None = None
    shared: SharedContextInput | None = None
    dependencies: tuple[Dependency, ...] = ()
    ancestors: tuple[UUID, ...] = ()
    unbound: Refusal | None = None
    dependencies_argument: str | None = None
    batch: BatchFacts | None = None
    respawn: RespawnFacts | None = None
    origin: str | None
    thread: bool
    options: SpawnOptions
    config_revision: int
    holder: str


def store_optional(keep: StoreText, kind: str, text: str | None) -> ContentRef | None:
    """Store a text and return its reference; None if the text is empty or None."""
    return keep(kind, text) if text else None


# Defaults of mode and cleanup.


def effective_mode(mode: SpawnMode | None, *, thread: bool) -> SpawnMode:
    """Return the requested mode; by default `session` with a thread, else `run`."""
    return mode or ("session" if thread else "run")


def effective_cleanup(cleanup: Cleanup | None, mode: SpawnMode) -> Cleanup:
    """Return `keep` in mode `session`; else the requested cleanup, by default `keep`."""
    return "keep" if mode == "session" else cleanup or "keep"


# Dependencies of a request.


def merge_dependencies(dependencies: Sequence[Dependency]) -> tuple[Dependency, ...]:
    """Return each run once, under its first name.

    If any name requires success, the first of those is kept, because a failure is reported by it.
    """
    runs: dict[UUID, Dependency] = {}
    for dependency in dependencies:
        before = runs.setdefault(dependency.run_id, dependency)
        if before.require == "ended":
            runs[dependency.run_id] = dependency if dependency.require == "success" else before
    return tuple(runs.values())


def dependencies_refusal(
    command: RequestSpawn, runs: Mapping[UUID, Run], waiting: Collection[Run]
) -> Refusal | None:
    """Return the refusal if a spawn may not wait for the runs that it names, or None.

    Args:
        command: The spawn.
        runs: The named runs, the runs above the spawn, and those that `linked_runs` returns for
            `waiting`.
        waiting: All runs of the tree that depend on others and are not queued yet.

    Raises:
        ReadAgain: `runs` lacks one of them.
    """
    if command.unbound is not None:
        return command.unbound
    for dependency in command.dependencies:
        facts = DependencyFacts(
            dependency=dependency, ancestors=command.ancestors, waiting=waiting, runs=runs
        )
        refusal = first_refusal(WAITS, facts)
        if refusal is not None:
            return refusal
    return None
