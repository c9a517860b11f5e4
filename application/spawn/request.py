"""The command that a resolved request becomes, and the runs that it names."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from application.log.envelope import Actor
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.identifiers import Identities
from application.ports.registry import Registry, RunQuery
from domain.plan.model import storable_model_name
from domain.run.facts import BatchFacts, Dependency
from domain.run.state import Run
from domain.session.role import ANCESTORS_MAX
from domain.spawn.dependencies import DependencyRequest, dependencies_text
from domain.spawn.dependency_rules import NAMES, NamedRuns
from domain.spawn.request import (
    AttachmentsVerdict,
    RequestSpawn,
    ResolvedSpawn,
    SharedContextInput,
    merge_dependencies,
)
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.refusals import Refusal
from domain.values.rules import first_refusal
from domain.values.session_key import agent_id_of
from domain.values.shared_values import ReferenceRequest
from domain.values.thinking_level import normalise_thinking


@dataclass(frozen=True, slots=True)
class RecordedInputs:
    """What whoever recorded the request just now need not read again."""

    key: bytes = field(repr=False)
    task: str
    workspace: str | None = None
    preamble: str | None = None


def inputs_in_hand(resolved: ResolvedSpawn, keys: Sequence[bytes]) -> list[RecordedInputs]:
    """What is known of each run that is asked for, whose texts are kept under these keys."""
    request = resolved.request
    return [
        RecordedInputs(key, task, request.requester.workspace_dir, request.context_preamble or None)
        for key, task in zip(keys, resolved.tasks, strict=True)
    ]


def spawn_command(
    resolved: ResolvedSpawn,
    actor: Actor,
    pinned: PinnedConfiguration,
    ids: Identities,
    holder: str,
    attachments: AttachmentsVerdict | None = None,
) -> RequestSpawn:
    """The command, with ids of its own."""
    request = resolved.request
    given = request.agent_id
    valid = given is None or is_valid_agent_id(given)
    target = normalise_agent_id(given) if given else resolved.requester_agent_id
    model, thinking = request.model, request.thinking
    # What is no name is free text, and free text is not kept in events.
    name = (
        storable_model_name(model, pinned.configuration.model_aliases())
        if model is not None
        else None
    )
    level = thinking if thinking is None or normalise_thinking(thinking) is not None else None
    return RequestSpawn(
        run_id=ids.run_id(),
        session_id=ids.run_id(),
        requester_key=resolved.requester_key,
        requester_display_key=resolved.requester_display_key,
        requester_agent_id=resolved.requester_agent_id,
        requester_session_id=ids.run_id(),
        asserted_by=actor.name,
        asserts_agent=resolved.asserts_agent,
        requester_in_sandbox=_is_sandboxed(resolved, pinned),
        agent_id_argument=given,
        target_agent_id=target if valid else None,
        label=request.label,
        task=resolved.tasks[0],
        preamble=request.context_preamble or None,
        model_argument=model if name is None else None,
        thinking_argument=thinking if level is None else None,
        workspace_argument=request.requester.workspace_dir,
        attachments=attachments,
        shared=resolved.shared,
        respawn=resolved.respawn,
        origin=request.requester.origin,
        thread=request.thread,
        options=request.options(model=name, thinking=level),
        config_revision=pinned.revision,
        holder=holder,
    )


def spawn_commands(
    resolved: ResolvedSpawn,
    actor: Actor,
    pinned: PinnedConfiguration,
    ids: Identities,
    holder: str,
    attachments: AttachmentsVerdict | None = None,
) -> tuple[RequestSpawn, ...]:
    """A command for each run that is asked for."""
    first = spawn_command(resolved, actor, pinned, ids, holder, attachments)
    if not resolved.request.parallel:
        return (first,)
    tasks = resolved.tasks
    others = (replace(first, run_id=ids.run_id(), session_id=ids.run_id()) for _ in tasks[1:])
    members, batch_id = (first, *others), ids.run_id()
    run_ids = tuple(one.run_id for one in members)
    return tuple(
        replace(
            one,
            task=task,
            label=f"{one.label}-{index + 1}" if one.label else None,
            batch=BatchFacts(batch_id=batch_id, index=index, run_ids=run_ids),
        )
        for index, (one, task) in enumerate(zip(members, tasks, strict=True))
    )


def _is_sandboxed(resolved: ResolvedSpawn, pinned: PinnedConfiguration) -> bool:
    """Whether the configuration puts the requester into a sandbox: as the agent that it says it is
    or as the one in its key, so that nobody leaves one by saying that it is another."""
    key, asserted = resolved.requester_key, resolved.requester_agent_id
    own, configuration = agent_id_of(key), pinned.configuration
    if configuration.is_sandboxed(own, key):
        return True
    return asserted != own and configuration.is_sandboxed(asserted, key)


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
    """The session that asks: the root of its tree, its key, and the runs above it."""

    root: str
    key: str
    ancestors: tuple[Run, ...]

    @property
    def ancestor_ids(self) -> tuple[UUID, ...]:
        """Return the ids of the runs above, its own first."""
        return tuple(run.run_id for run in self.ancestors)

    def is_below(self, run: Run) -> bool:
        """Return whether the session is that of the run, or is below it."""
        return any(one.session_id == run.session_id for one in self.ancestors)


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
    return ResolvedReferences(merge_dependencies(dependencies), asker.ancestor_ids, references)


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
    # The sessions above end after the child, so the name means another if there is one.
    found = [run for run in labelled if not asker.is_below(run)] or labelled
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


async def _ancestors(registry: Registry, parent: Run | None) -> tuple[Run, ...]:
    """The run of the session that asks, that of its requester, and so on."""
    above: list[Run] = []
    while parent is not None and len(above) < ANCESTORS_MAX:
        above.append(parent)
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
        if run.stage != "refused" and not asker.is_below(run):
            newest.setdefault(run.session_id, run)
    return list(newest.values())
