"""The first and the last event of a spawn that was not to be; every spawn begins with the first."""

from uuid import UUID

from pydantic import Field

from domain.content import ContentRef
from domain.run.facts import (
    AttachmentsRequest,
    ContextMode,
    RefusalStatus,
    Requester,
    SpawnOptions,
)
from domain.run.plan_facts import PlanFacts
from domain.run.waiting_facts import BatchFacts, Dependency
from domain.spawn.admission import AdmissionFacts
from domain.values.record import Event
from domain.values.shared_values import SharedContextRequest


class SpawnRequested(Event):
    """Somebody asked for a child. Carries what the admission was decided from.

    `requested_agent_id` is the normalised id that was asked for (the requester's own when none
    was given) and None when what was given is no agent id at all; the text that was given is then
    in `agent_id_argument`. Likewise `model_argument` and `thinking_argument`, for what is no name
    of a model and no level of thinking; `workspace_argument` is the folder that was asked for.
    `light_context` asks for a prompt without the files of the agent's workspace, `context_argument`
    whether the child is to begin with the requester's conversation; None when nothing was said.
    `shared` is what is shared with the child, `dependencies` what it waits for; only with these
    there are `ancestors`, the runs above it, its requester's own first. `batch` names the others
    that were asked for in the same request.
    """

    run_id: UUID
    session_id: UUID
    requester: Requester
    requested_agent_id: str | None = None
    agent_id_argument: ContentRef | None = None
    label: str | None = None
    task: ContentRef
    preamble: ContentRef | None = None
    model_argument: ContentRef | None = None
    thinking_argument: ContentRef | None = None
    workspace_argument: ContentRef | None = None
    attachments: AttachmentsRequest | None = None
    light_context: bool = False
    context_argument: ContextMode | None = None
    shared: SharedContextRequest | None = None
    dependencies: tuple[Dependency, ...] = ()
    ancestors: tuple[UUID, ...] = ()
    batch: BatchFacts | None = None
    options: SpawnOptions
    facts: AdmissionFacts
    config_revision: int
    holder: str


class SpawnRefused(Event):
    """The spawn was not permitted or could not be prepared.

    `step` is where it failed, `text` what the caller was told, `inputs` what was compared; without
    a text one whose texts were erased by then.
    `announcement` is the inbox entry written when no caller was there to be told. `facts` is as
    much as had been looked at of what a plan is decided from; None when nothing was.
    """

    rule: str
    status: RefusalStatus
    step: str
    text: ContentRef | None = None
    inputs: dict[str, str | int | bool | None] = Field(default_factory=dict)
    announcement: ContentRef | None = None
    dedupe_key: str | None = None
    facts: PlanFacts | None = None
