"""A spawn request of the right shape, and the command it becomes."""

from dataclasses import dataclass, field, replace

from application.log.envelope import Actor
from application.ports.configurations import PinnedConfiguration
from application.ports.identifiers import Identities
from domain.context.attachments import RequestedAttachment
from domain.plan.model import storable_model_name
from domain.run.facts import BatchFacts, ContextMode, SpawnOptions
from domain.spawn.dependencies import DependencyRequest
from domain.spawn.request import AttachmentsVerdict, RequestSpawn, SharedContextInput
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.session_key import agent_id_of
from domain.values.thinking_level import normalise_thinking


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """A request of the right shape. `requester_key` is canonical; `origin` is JSON text.

    `asserts_agent` is whether `requester_agent_id` is another than the one in the key.
    `workspace_argument` is the folder that the requester is said to work in, `mount_path` where it
    would like the attachments to be. `batch` are the tasks of one that asks for a run for each of
    them, `task` being the first; empty for one that asks for one run.
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
