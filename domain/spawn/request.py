"""What a spawn is asked for with, and under which policy."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from domain.content import ContentRef
from domain.run.facts import ContextMode, RefusalStatus, SpawnOptions
from domain.run.waiting_facts import BatchFacts, Dependency
from domain.spawn.admission import ConfiguredAt, Refusal
from domain.values.shared_values import ReferenceRequest, SharedScope

StoreText = Callable[[str, str], ContentRef]


"""Keeps a text (kind, text) beside the log and gives the reference to put into an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnPolicy:
    """What the pinned configuration says about the requester's spawns."""

    max_spawn_depth: int
    max_children: int
    require_agent_id: bool
    allow_agents: tuple[str, ...] | None
    require_agent_id_from: ConfiguredAt | None = None
    allow_agents_from: ConfiguredAt | None = None


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
class SharedContextInput:
    """What a request shares: keys with their values as compact JSON, and runs whose results are
    to arrive under keys."""

    values: tuple[tuple[str, str], ...] = ()
    scope: SharedScope = "family"
    references: tuple[ReferenceRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpawn:
    """A request whose shape is right.

    `asserts_agent` is whether the requester's agent is the request's word alone; it counts only for
    a session that is seen for the first time. `requester_in_sandbox` is whether the configuration
    puts the requester into a sandbox now. `unbound` is what is to be said of a name that stands for
    none of the runs that it may depend on, or for several.
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
    light_context: bool = False
    context_argument: ContextMode | None = None
    shared: SharedContextInput | None = None
    dependencies: tuple[Dependency, ...] = ()
    ancestors: tuple[UUID, ...] = ()
    unbound: Refusal | None = None
    batch: BatchFacts | None = None
    origin: str | None
    thread: bool
    options: SpawnOptions
    config_revision: int
    holder: str


def store_optional(keep: StoreText, kind: str, text: str | None) -> ContentRef | None:
    """The reference to a text; None when there is none."""
    return keep(kind, text) if text else None
