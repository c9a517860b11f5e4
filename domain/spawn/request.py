"""What a spawn is asked for with, and under which policy."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from domain.run.facts import (
    BatchFacts,
    Cleanup,
    ContextMode,
    Dependency,
    RespawnFacts,
    SpawnMode,
    SpawnOptions,
)
from domain.run.state import Run
from domain.spawn.dependency_rules import WAITS, DependencyFacts
from domain.values.record import ContentRef
from domain.values.refusals import ReadAgain, Refusal
from domain.values.rules import RefusalStatus, first_refusal
from domain.values.shared_values import ReferenceRequest, SharedScope

TASK_BYTES_MAX = 8 * 1024 * 1024
"""Of a task, of all tasks of a batch together, and of a message."""
StoreText = Callable[[str, str], ContentRef]
"""Keeps a text (kind, text) beside the log and gives the reference to put into an event."""


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

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """Each key with the bytes of its value."""
        return [(key, len(text.encode())) for key, text in self.values]


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
    light_context: bool = False
    context_argument: ContextMode | None = None
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


DEPENDENCIES_MAX = 20


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

    `runs` are those that it names, `waiting` all of its tree that depend on others and have not
    been queued. Raises `ReadAgain` when `runs` is without one of them.
    """
    if command.unbound is not None:
        return command.unbound
    for one in command.dependencies:
        target = runs.get(one.run_id)
        if target is None:
            raise ReadAgain(f"run {one.run_id} was not read; read it and ask again")
        facts = DependencyFacts(
            dependency=one, target=target, ancestors=command.ancestors, waiting=waiting
        )
        refusal = first_refusal(WAITS, facts)
        if refusal is not None:
            return refusal
    return None
