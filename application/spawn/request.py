"""Commands of a resolved request, and resolution of the runs that it names."""

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
    """Inputs of a run that the recording process has in memory and need not read again."""

    key: bytes = field(repr=False)
    task: str
    workspace: str | None = None
    preamble: str | None = None


def inputs_in_hand(resolved: ResolvedSpawn, keys: Sequence[bytes]) -> list[RecordedInputs]:
    """Return the inputs of each requested run. `keys` are the text keys of the runs."""
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
    """Return the command for a single run, with new ids."""
    request = resolved.request
    given = request.agent_id
    valid = given is None or is_valid_agent_id(given)
    target = normalise_agent_id(given) if given else resolved.requester_agent_id
    model, thinking = request.model, request.thinking
    # A value that is not a name is free text, which must not be stored in events.
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
    """Return a command for each requested run."""
    first = spawn_command(resolved, actor, pinned, ids, holder, attachments)
    if not resolved.request.parallel:
        return (first,)
    tasks = resolved.tasks
    others = (replace(first, run_id=ids.run_id(), session_id=ids.run_id()) for _ in tasks[1:])
    members, batch_id = (first, *others), ids.run_id()
    run_ids = tuple(member.run_id for member in members)
    return tuple(
        replace(
            member,
            task=task,
            label=f"{member.label}-{index + 1}" if member.label else None,
            batch=BatchFacts(batch_id=batch_id, index=index, run_ids=run_ids),
        )
        for index, (member, task) in enumerate(zip(members, tasks, strict=True))
    )


def _is_sandboxed(resolved: ResolvedSpawn, pinned: PinnedConfiguration) -> bool:
    """Return True if the requester is sandboxed, as its asserted agent or as the agent in its key.

    Both are checked so that asserting another agent does not leave the sandbox.
    """
    key, asserted = resolved.requester_key, resolved.requester_agent_id
    own, configuration = agent_id_of(key), pinned.configuration
    if configuration.is_sandboxed(own, key):
        return True
    return asserted != own and configuration.is_sandboxed(asserted, key)


# Names in a request are bound to runs here. The log's lock checks the states of these runs again,
# but does not bind the names anew.


NAMED_RUNS_MAX = 200
CANDIDATES_MAX = 200


@dataclass(frozen=True, slots=True)
class ResolvedReferences:
    """The runs that a request names.

    Attributes:
        dependencies: Runs to wait for.
        ancestors: Runs above the requester, its own first.
        references: Results to share, and their keys.
        unbound: Refusal for a name that matches no run, or several.
        argument: With `unbound`, all names as given.
    """

    dependencies: tuple[Dependency, ...] = ()
    ancestors: tuple[UUID, ...] = ()
    references: tuple[ReferenceRequest, ...] = ()
    unbound: Refusal | None = None
    argument: str | None = None


NO_REFERENCES = ResolvedReferences()


@dataclass(frozen=True, slots=True)
class _ReferenceScope:
    """The requesting session: root of its tree, its key, and the runs above it."""

    root: str
    key: str
    ancestors: tuple[Run, ...]

    @property
    def ancestor_ids(self) -> tuple[UUID, ...]:
        """Return the ids of the runs above, its own first."""
        return tuple(run.run_id for run in self.ancestors)

    def is_below(self, run: Run) -> bool:
        """Return True if the session belongs to the run or is below it."""
        return any(ancestor.session_id == run.session_id for ancestor in self.ancestors)


async def resolve_references(
    work: UnitOfWork,
    requests: Sequence[DependencyRequest],
    requester: str,
    root: str,
    parent: Run | None,
) -> ResolvedReferences:
    """Resolve the names in a session's request to runs of its tree.

    Args:
        requests: The names, and how each is used.
        requester: Key of the requesting session.
        root: Key of the root session of its tree.
        parent: Run of the session, if it has one.
    """
    if not requests:
        return NO_REFERENCES
    asker = _ReferenceScope(root, requester, await _ancestors(work.registry, parent))
    labels = sorted({request.name for request in requests if request.via != "reference"})
    of_label = (
        await work.registry.runs_by_label(root, labels, limit=NAMED_RUNS_MAX) if labels else ()
    )
    dependencies: list[Dependency] = []
    for request in requests:
        if request.via == "reference":
            candidates = await _runs_of_requester(work.registry, request.name, asker)
        else:
            candidates = await _runs_of_tree(work.registry, request.name, of_label, asker)
        others = () if candidates else await _runs_to_name(work, request, asker)
        refusal = first_refusal(NAMES, NamedRuns(request=request, runs=candidates, others=others))
        if refusal is not None:
            return ResolvedReferences(unbound=refusal, argument=dependencies_text(requests))
        run_id = candidates[0].run_id
        dependencies.append(
            Dependency(run_id=run_id, name=request.name, via=request.via, require=request.require)
        )
    references = tuple(
        ReferenceRequest(key=dependency.name, run_id=dependency.run_id)
        for dependency in dependencies
        if dependency.via == "reference"
    )
    return ResolvedReferences(merge_dependencies(dependencies), asker.ancestor_ids, references)


def apply_references(command: RequestSpawn, names: ResolvedReferences) -> RequestSpawn:
    """Return the command with its names resolved."""
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
    """Return the runs with exactly this label, else the run with this id."""
    labelled = [run for run in of_label if run.label == name]
    # An ancestor cannot end before the child, so other runs with the label take precedence.
    found = [run for run in labelled if not asker.is_below(run)] or labelled
    if found:
        return found
    run = await _run_by_id(registry, name)
    return [run] if run is not None and run.requester.root_session_key == asker.root else []


async def _runs_of_requester(
    registry: Registry, name: str, asker: _ReferenceScope
) -> Sequence[Run]:
    """Return the session's own spawns with exactly this label, else with this label prefix, else by
    id."""
    beginning = await registry.runs_by_label_prefix(asker.key, name, limit=NAMED_RUNS_MAX)
    found = [run for run in beginning if run.label == name] or beginning
    if found:
        return found
    run = await _run_by_id(registry, name)
    return [run] if run is not None and run.requester.session_key == asker.key else []


async def _ancestors(registry: Registry, parent: Run | None) -> tuple[Run, ...]:
    """Return the run of the requesting session, the run of its requester, and so on."""
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
    """Return the newest run of each session that a name could mean, for the text of a refusal."""
    is_reference = request.via == "reference"
    requester, tree = RunQuery.where(requester=asker.key), RunQuery.where(root=asker.root)
    query = requester if is_reference else tree
    runs = await work.registry.runs(query, at=await work.log.head(), limit=CANDIDATES_MAX)
    newest: dict[UUID, Run] = {}
    for run in runs:
        if run.stage != "refused" and not asker.is_below(run):
            newest.setdefault(run.session_id, run)
    return list(newest.values())
