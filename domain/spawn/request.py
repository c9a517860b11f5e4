"""A request for a sub-agent: as it is given, with what its names stand for, and as a command."""

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
"""Of a task, of all tasks of a batch together, and of a message."""
NAME_CHARS_MAX = 256
LABEL_CHARS_MAX = 200
ADDRESS_CHARS_MAX = 1024
ATTACHMENTS_MAX = 1_000
DEPENDENCIES_MAX = 20
DEPENDENCY_CHARS_MAX = 200
StoreText = Callable[[str, str], ContentRef]
"""Keeps a text (kind, text) beside the log and gives the reference to put into an event."""


# What a request says: the body of `POST /v1/spawns`, and what every other door makes of its own.


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

    @property
    def origin(self) -> str | None:
        """Where it can be answered, as JSON text; None if it gave no address."""
        given = {
            type(self).model_fields[name].alias: value
            for name in ADDRESS_FIELDS
            if (value := getattr(self, name)) not in (None, [])
        }
        return compact_json(given) if given else None


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


TaskField = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"items": {"type": "string"}, "type": "array"}]},
    ),
    Field(description="With `parallel` a list: a run for each of them, or for none."),
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
            "Earlier runs of the same tree, by their labels or ids. The child is prepared, and"
            " queued when all of them have ended with `success` and all below them is done; with"
            ' `{"run": …, "require": "ended"}` any end will do.'
        ),
    ),
]
ChainAfterField = Annotated[
    Any,
    WithJsonSchema({"anyOf": [*DEPENDENCY_SCHEMA["anyOf"], {"type": "null"}]}),
    Field(description="One run more to wait for, as in `dependsOn`."),
]


def _trimmed(text: str | None) -> str | None:
    return (text or "").strip() or None


class _AskedFor(Body):
    requester: RequesterBody
    task: TaskField
    label: Annotated[
        Annotated[str, Field(max_length=LABEL_CHARS_MAX)] | None,
        Field(description="A name for the run, on one line."),
    ] = None
    agent_id: Annotated[
        Annotated[str, Field(max_length=4096)] | None,
        Field(description="The agent that runs the child, or an alias of it."),
    ] = None
    model: Annotated[NameField | None, Field(description="The model, as `provider/name`.")] = None
    thinking: Annotated[NameField | None, Field(description="The thinking level.")] = None


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
    """`POST /v1/spawns`."""

    thread: Annotated[
        bool,
        Field(
            description=(
                "Bind the child to a thread of the requester's channel. `mode` is `session` then,"
                " unless it is given: the child stays and takes messages until it is stopped."
            )
        ),
    ] = False
    mode: Annotated[
        Literal["run", "session"] | None,
        Field(description="One run, or a session that stays, which needs `thread`."),
    ] = None
    cleanup: Annotated[
        Literal["delete", "keep"] | None,
        Field(
            description=(
                "`delete`: the session is archived right after the announcement; `keep`, the"
                " default: later."
            )
        ),
    ] = None
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
    attach_as: Annotated[
        AttachAsBody, Field(description="Where the child is told to look for the files.")
    ] = Field(default_factory=AttachAsBody)
    context_preamble: Annotated[
        str | None, Field(description="A text that stands in front of the child's system prompt.")
    ] = None
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
        return _trimmed(label)

    @field_validator("agent_id", "model", "thinking")
    @classmethod
    def _without_blanks(cls, text: str | None) -> str | None:
        return _trimmed(text)

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

    @property
    def files(self) -> tuple[RequestedAttachment, ...]:
        """What is attached."""
        return tuple(
            RequestedAttachment(
                name=one.name, content=one.content, encoding=one.encoding, mime_type=one.mime_type
            )
            for one in self.attachments
        )

    def options(self, *, model: str | None, thinking: str | None) -> SpawnOptions:
        """Return the options of its runs, with these names of a model and of a thinking level."""
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
    """What a request shares: keys with their values as compact JSON, and runs whose results are
    to arrive under keys."""

    values: tuple[tuple[str, str], ...] = ()
    scope: SharedScope = "family"
    references: tuple[ReferenceRequest, ...] = ()

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Each key with the bytes of its value."""
        return [(key, len(text.encode())) for key, text in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSpawn:
    """A request with what its names stand for.

    Attributes:
        request: The request as it was given.
        requester_key: The canonical key of the session that asks.
        requester_display_key: The key as it is shown.
        requester_agent_id: The agent that the requester is, or says it is.
        asserts_agent: True if that is another agent than the one in the key.
        tasks: A task for each run that is asked for.
        shared: The values that are shared; None if none are.
        dependencies: The runs that are waited for, by name.
        respawn: The run that the request was made from, if it was made from one.
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


# The request of one run as a command.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentsVerdict:
    """What came of the files of a request: their list as a text, or why they are refused."""

    count: int
    total_bytes: int = 0
    mount_path_hint: str | None = None
    retain: bool = False
    manifest: str | None = None
    refusal: str | None = None
    refusal_status: RefusalStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpawn:
    """A request whose shape is right.

    `asserts_agent` is whether the requester's agent is the request's word alone; it counts only for
    a session that is seen for the first time. `requester_in_sandbox` is whether the configuration
    puts the requester into a sandbox now. `unbound` is what is to be said of a name that stands for
    none of the runs that it may depend on, or for several; only then `dependencies_argument` has
    all such names, as they were given (`dependencies_text`).
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
    """The reference to a text; None when there is none."""
    return keep(kind, text) if text else None


# What mode and cleanup a spawn gets from what was asked.


def effective_mode(mode: SpawnMode | None, *, thread: bool) -> SpawnMode:
    """The mode that was asked for; else `session` when a thread was, else `run`."""
    return mode or ("session" if thread else "run")


def effective_cleanup(cleanup: Cleanup | None, mode: SpawnMode) -> Cleanup:
    """`keep` for a session that lives on; else what was asked for, else `keep`."""
    return "keep" if mode == "session" else cleanup or "keep"


# What a request says that its run is to wait for, and whether it may.


def merge_dependencies(dependencies: Sequence[Dependency]) -> tuple[Dependency, ...]:
    """Each run once, by the name that came first; by the first with which it has to succeed when
    there is one, for that is what a failure is told of."""
    runs: dict[UUID, Dependency] = {}
    for one in dependencies:
        before = runs.setdefault(one.run_id, one)
        if before.require == "ended":
            runs[one.run_id] = one if one.require == "success" else before
    return tuple(runs.values())


def dependencies_refusal(
    command: RequestSpawn, runs: Mapping[UUID, Run], waiting: Collection[Run]
) -> Refusal | None:
    """Why a spawn may not wait for what it is asked to; None when it may.

    `waiting` are all of its tree that depend on others and have not been queued, `runs` those that
    it names, those above it, and what `linked_runs` names of `waiting`. Raises `ReadAgain` when
    `runs` is without one of them.
    """
    if command.unbound is not None:
        return command.unbound
    for one in command.dependencies:
        facts = DependencyFacts(
            dependency=one, ancestors=command.ancestors, waiting=waiting, runs=runs
        )
        refusal = first_refusal(WAITS, facts)
        if refusal is not None:
            return refusal
    return None
