"""A spawn request of the right shape, and the command it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from application.log.envelope import Actor
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.identifiers import Identities
from application.ports.registry import Registry, RunQuery
from domain.context.attachments import RequestedAttachment
from domain.plan.model import storable_model_name
from domain.run.facts import BatchFacts, ContextMode, Dependency, RespawnFacts, SpawnOptions
from domain.run.state import Run
from domain.session.role import ANCESTORS_MAX
from domain.spawn.dependencies import DependencyRequest, dependencies_text
from domain.spawn.dependency_rules import NAMES, NamedRuns
from domain.spawn.request import (
    AttachmentsVerdict,
    RequestSpawn,
    SharedContextInput,
    merge_dependencies,
)
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.refusals import Refusal
from domain.values.rules import first_refusal
from domain.values.session_key import agent_id_of
from domain.values.shared_values import ReferenceRequest
from domain.values.thinking_level import normalise_thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """A request of the right shape. `requester_key` is canonical; `origin` is JSON text.

    `asserts_agent` is whether `requester_agent_id` is another than the one in the key.
    `workspace_argument` is the folder that the requester is said to work in, `mount_path` where it
    would like the attachments to be. `batch` are the tasks of one that asks for a run for each of
    them, `task` being the first; empty for one that asks for one run. `respawn` is the run that it
    was made from, if it was made from one.
    """

    requester_key: str
    requester_display_key: str
    requester_agent_id: str
    asserts_agent: bool = False
    origin: str | None
    task: str
    preamble: str | None
    label: str | None
    agent_id: str | None
    thread: bool
    workspace_argument: str | None = None
    attachments: tuple[RequestedAttachment, ...] = ()
    mount_path: str | None = None
    light_context: bool = False
    context_argument: ContextMode | None = None
    shared: SharedContextInput | None = None
    batch: tuple[str, ...] = ()
    dependencies: tuple[DependencyRequest, ...] = ()
    respawn: RespawnFacts | None = None
    options: SpawnOptions

    @property
    def tasks(self) -> tuple[str, ...]:
        """One for each run that is asked for."""
        return self.batch or (self.task,)


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """What whoever recorded the request just now need not read again."""

    key: bytes = field(repr=False)
    task: str
    workspace: str | None = None
    preamble: str | None = None


def inputs_in_hand(request: SpawnRequest, keys: Sequence[bytes]) -> list[RecordedInputs]:
    """What is known of each run that is asked for, whose texts are kept under these keys."""
    return [
        RecordedInputs(key, task, request.workspace_argument, request.preamble)
        for key, task in zip(keys, request.tasks, strict=True)
    ]


def spawn_command(
    request: SpawnRequest,
    actor: Actor,
    pinned: PinnedConfiguration,
    ids: Identities,
    holder: str,
    attachments: AttachmentsVerdict | None = None,
) -> RequestSpawn:
    """The command, with ids of its own."""
    given = request.agent_id
    valid = given is None or is_valid_agent_id(given)
    target = normalise_agent_id(given) if given else request.requester_agent_id
    model, thinking = request.options.model, request.options.thinking
    name = (
        storable_model_name(model, pinned.configuration.model_aliases())
        if model is not None
        else None
    )
    no_level = thinking is not None and normalise_thinking(thinking) is None
    # What is no name is free text, and free text is not kept in events.
    named = {"model": name} | ({"thinking": None} if no_level else {})
    return RequestSpawn(
        run_id=ids.run_id(),
        session_id=ids.run_id(),
        requester_key=request.requester_key,
        requester_display_key=request.requester_display_key,
        requester_agent_id=request.requester_agent_id,
        requester_session_id=ids.run_id(),
        asserted_by=actor.name,
        asserts_agent=request.asserts_agent,
        requester_in_sandbox=_is_sandboxed(request, pinned),
        agent_id_argument=given,
        target_agent_id=target if valid else None,
        label=request.label,
        task=request.task,
        preamble=request.preamble,
        model_argument=model if name is None else None,
        thinking_argument=thinking if no_level else None,
        workspace_argument=request.workspace_argument,
        attachments=attachments,
        light_context=request.light_context,
        context_argument=request.context_argument,
        shared=request.shared,
        respawn=request.respawn,
        origin=request.origin,
        thread=request.thread,
        options=request.options.model_copy(update=named),
        config_revision=pinned.revision,
        holder=holder,
    )


def spawn_commands(
    request: SpawnRequest,
    actor: Actor,
    pinned: PinnedConfiguration,
    ids: Identities,
    holder: str,
    attachments: AttachmentsVerdict | None = None,
) -> tuple[RequestSpawn, ...]:
    """A command for each run that is asked for."""
    first = spawn_command(request, actor, pinned, ids, holder, attachments)
    if not request.batch:
        return (first,)
    others = (
        replace(first, run_id=ids.run_id(), session_id=ids.run_id()) for _ in request.batch[1:]
    )
    members, batch_id = (first, *others), ids.run_id()
    run_ids = tuple(one.run_id for one in members)
    return tuple(
        replace(
            one,
            task=task,
            label=f"{one.label}-{index + 1}" if one.label else None,
            batch=BatchFacts(batch_id=batch_id, index=index, run_ids=run_ids),
        )
        for index, (one, task) in enumerate(zip(members, request.batch, strict=True))
    )


def _is_sandboxed(request: SpawnRequest, pinned: PinnedConfiguration) -> bool:
    """Whether the configuration puts the requester into a sandbox: as the agent that it says it is
    or as the one in its key, so that nobody leaves one by saying that it is another."""
    agents = {request.requester_agent_id, agent_id_of(request.requester_key)}
    key = request.requester_key
    return any(pinned.configuration.is_sandboxed(agent, key) for agent in agents)


# Which runs are meant by the names in a request. What is bound here is judged under the log's lock
# once more, from the states of then; which run it is does not change.


NAMED_RUNS_MAX = 200
CANDIDATES_MAX = 200


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """The runs that a spawn depends on, those above it, and which results are to arrive under which
    keys; or what is to be said of a name that stands for no run, or for several, with all the names
    as they were given."""

    dependencies: tuple[Dependency, ...] = ()
    ancestors: tuple[UUID, ...] = ()
    references: tuple[ReferenceRequest, ...] = ()
    unbound: Refusal | None = None
    argument: str | None = None


NO_REFERENCES = ResolvedReferences()


@dataclass(frozen=True, slots=True)
class _ReferenceScope:
    """Who asks: in which tree, under which key, and below which runs."""

    root: str
    key: str
    ancestors: tuple[UUID, ...]


async def resolve_references(
    work: UnitOfWork,
    requests: Sequence[DependencyRequest],
    requester: str,
    root: str,
    parent: Run | None,
) -> ResolvedReferences:
    """The names in a request of a session, in the tree of its root session; `parent` is the run of
    the session, if it has one."""
    if not requests:
        return NO_REFERENCES
    asker = _ReferenceScope(root, requester, await _ancestors(work.registry, parent))
    labels = sorted({one.name for one in requests if one.via != "reference"})
    of_label = (
        await work.registry.runs_by_label(root, labels, limit=NAMED_RUNS_MAX) if labels else ()
    )
    dependencies: list[Dependency] = []
    for one in requests:
        if one.via == "reference":
            candidates = await _runs_of_requester(work.registry, one.name, asker)
        else:
            candidates = await _runs_of_tree(work.registry, one.name, of_label, asker)
        others = () if candidates else await _runs_to_name(work, one, asker)
        refusal = first_refusal(NAMES, NamedRuns(request=one, runs=candidates, others=others))
        if refusal is not None:
            return ResolvedReferences(unbound=refusal, argument=dependencies_text(requests))
        run_id = candidates[0].run_id
        dependencies.append(
            Dependency(run_id=run_id, name=one.name, via=one.via, require=one.require)
        )
    references = tuple(
        ReferenceRequest(key=one.name, run_id=one.run_id)
        for one in dependencies
        if one.via == "reference"
    )
    return ResolvedReferences(merge_dependencies(dependencies), asker.ancestors, references)


def apply_references(command: RequestSpawn, names: ResolvedReferences) -> RequestSpawn:
    """The request with what its names stand for."""
    if names == NO_REFERENCES:
        return command
    shared = command.shared
    if names.references:
        shared = replace(shared or SharedContextInput(), references=names.references)
    return replace(
        command,
        dependencies=names.dependencies,
        ancestors=names.ancestors,
        unbound=names.unbound,
        dependencies_argument=names.argument,
        shared=shared,
    )


async def _runs_of_tree(
    registry: Registry, name: str, of_label: Sequence[Run], asker: _ReferenceScope
) -> Sequence[Run]:
    """Those with exactly this label, else the one with this id."""
    labelled = [run for run in of_label if run.label == name]
    # Those above can never be waited for, so the name means another if there is one.
    found = [run for run in labelled if run.run_id not in asker.ancestors] or labelled
    if found:
        return found
    run = await _run_by_id(registry, name)
    return [run] if run is not None and run.requester.root_session_key == asker.root else []


async def _runs_of_requester(
    registry: Registry, name: str, asker: _ReferenceScope
) -> Sequence[Run]:
    """Those with exactly this label, else with a label that begins like it, else by id: of the runs
    that the session has spawned itself."""
    beginning = await registry.runs_by_label_prefix(asker.key, name, limit=NAMED_RUNS_MAX)
    found = [run for run in beginning if run.label == name] or beginning
    if found:
        return found
    run = await _run_by_id(registry, name)
    return [run] if run is not None and run.requester.session_key == asker.key else []


async def _ancestors(registry: Registry, parent: Run | None) -> tuple[UUID, ...]:
    """The run of the session that asks, that of its requester, and so on."""
    above: list[UUID] = []
    while parent is not None and len(above) < ANCESTORS_MAX:
        above.append(parent.run_id)
        run_id = parent.requester.run_id
        parent = await registry.run(run_id) if run_id is not None else None
    return tuple(above)


async def _run_by_id(registry: Registry, name: str) -> Run | None:
    try:
        return await registry.run(UUID(name))
    except ValueError:
        return None


async def _runs_to_name(
    work: UnitOfWork, request: DependencyRequest, asker: _ReferenceScope
) -> Sequence[Run]:
    """The newest run of each session that such a name could stand for."""
    is_reference = request.via == "reference"
    requester, tree = RunQuery.where(requester=asker.key), RunQuery.where(root=asker.root)
    query = requester if is_reference else tree
    runs = await work.registry.runs(query, at=await work.log.head(), limit=CANDIDATES_MAX)
    newest: dict[UUID, Run] = {}
    for run in runs:
        if run.stage != "refused" and run.run_id not in asker.ancestors:
            newest.setdefault(run.session_id, run)
    return list(newest.values())
