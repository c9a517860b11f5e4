"""What can happen to a run. The vocabulary only grows; a changed event gets a new version."""

from typing import Literal
from uuid import UUID

from pydantic import Field

from domain.admission import AdmissionFacts
from domain.content import ContentRef
from domain.fact import Event
from domain.run.continuation_events import ContinuationEvent
from domain.run.facts import (
    AttachmentsAsked,
    Candidate,
    ContextMode,
    Ingredient,
    Outcome,
    Plan,
    PromptPart,
    RefusalStatus,
    Requester,
    ScriptReceipt,
    SpawnOptions,
    TranscriptSeal,
    Usage,
)
from domain.run.hook_events import HookEvent, HookName
from domain.run.plan_facts import PlanFacts
from domain.run.step_events import StepEvent
from domain.run.steps import StepName


class SpawnRequested(Event):
    """Somebody asked for a child. Carries what the admission was decided from.

    `requested_agent_id` is the normalised id that was asked for (the requester's own when none
    was given) and None when what was given is no agent id at all; the text that was given is then
    in `agent_id_argument`. Likewise `model_argument` and `thinking_argument`, for what is no name
    of a model and no level of thinking; `workspace_argument` is the folder that was asked for.
    `light_context` asks for a prompt without the files of the agent's workspace, `context_argument`
    whether the child is to begin with the requester's conversation; None when nothing was said.
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
    attachments: AttachmentsAsked | None = None
    light_context: bool = False
    context_argument: ContextMode | None = None
    options: SpawnOptions
    facts: AdmissionFacts
    config_revision: int
    holder: str


class PreparationResumed(Event):
    """Another holder goes on with a preparation whose holder is gone."""

    holder: str
    attempt: int
    reason: str


class ScriptsResolved(Event):
    """Every context script has run, failed or been skipped."""

    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...] = ()


class AgentOverridden(Event):
    """A script's proposal was taken: the child will be another agent than the one asked for."""

    from_agent_id: str
    to_agent_id: str
    candidates: tuple[Candidate, ...]


class PreparationStarted(Event):
    """The child's key is minted; `steps` are those that will be taken for it, in their order.

    `resources` names what they make in the words of version 1, in which there were no steps.
    """

    child_session_key: str
    agent_id: str
    resources: tuple[str, ...]
    steps: tuple[StepName, ...] = ()


class SessionCreated(Event):
    """The child exists and its plan is fixed: the requester is answered.

    `facts` is what the plan was decided from; None before version 2 of the event. `hooks` are those
    that are told of the run, `delivery_origin` is where its results go by the word of who bound its
    thread, as JSON; None when that is for the requester to say. With `direct_delivery` the runtime
    brings them there, and the requester is not told.
    """

    child_session_key: str
    session_id: UUID
    agent_id: str
    depth: int
    max_depth: int
    role: Literal["main", "orchestrator", "leaf"]
    control_scope: Literal["children", "none"]
    plan: Plan
    ingredients: tuple[Ingredient, ...]
    warnings: tuple[str, ...] = ()
    note: str | None = None
    facts: PlanFacts | None = None
    hooks: tuple[HookName, ...] = ()
    delivery_origin: ContentRef | None = None
    context_mode: ContextMode = "isolated"
    direct_delivery: bool = False


class RunQueued(Event):
    """Nothing to wait for any more; this event's position is the run's place in its lane."""

    lane: str
    lane_depth: int


class RunClaimed(Event):
    """A holder took the run out of its lane. The claim's epoch is this event's version.

    Width and occupation are what was compared; None when it was taken over from a claim that had
    lost its holder, for then the slot was held already.
    """

    holder: str
    attempt: int
    lane_width: int | None = None
    lane_running: int | None = None


class RunStarted(Event):
    """The runtime is about to execute, with this prompt and no other."""

    runtime: str
    system_prompt: ContentRef
    message: ContentRef
    parts: tuple[PromptPart, ...]
    shared_context_position: int | None = None


class StopRequested(Event):
    """Somebody asked a run that is held to stop; its holder ends it."""

    by: str
    by_requester: bool
    reason: ContentRef | None = None


class RunEnded(Event):
    """The run is over. The outcome comes from runtime signals, never from the model's text.
    `reason` is a fixed word (`exit`, `signal`, `timeout`, `stopped`, `interrupted`, `output_limit`,
    `not_executable`, `prompt_too_large`, `played`).
    """

    outcome: Outcome
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    result: ContentRef | None = None
    error: ContentRef | None = None
    usage: Usage | None = None
    transcript: TranscriptSeal | None = None
    stopped_by: str | None = None
    stopped_by_requester: bool = False
    pending_descendants: int = 0


class DescendantsSettled(Event):
    """The last descendant of an ended run is announced or refused, so it can be announced now."""


class RunAnnounced(Event):
    """The requester's inbox has the result (`inbox`), or needs none (`skipped`, `not_required`).
    `origin` is where it is to go from there, by the word of a hook, as JSON."""

    disposition: Literal["inbox", "skipped", "not_required"]
    reason: str | None = None
    status: str
    text: ContentRef | None = None
    dedupe_key: str
    origin: ContentRef | None = None


class AnnouncementAcknowledged(Event):
    """The requester has taken the announcement."""

    by: str


class RunArchived(Event):
    """The run's session is put away; its transcript keeps existing under `transcript_path`."""

    reason: Literal["cleanup", "due"]
    transcript_path: str | None = None


class SpawnRefused(Event):
    """The spawn was not permitted or could not be prepared.

    `step` is where it failed, `text` what the caller was told, `inputs` what was compared.
    `announcement` is the inbox entry written when no caller was there to be told. `facts` is as
    much as had been looked at of what a plan is decided from; None when nothing was.
    """

    rule: str
    status: RefusalStatus
    step: str
    text: ContentRef
    inputs: dict[str, str | int | bool | None] = Field(default_factory=dict)
    announcement: ContentRef | None = None
    dedupe_key: str | None = None
    facts: PlanFacts | None = None


RunEvent = (
    SpawnRequested
    | PreparationResumed
    | ScriptsResolved
    | AgentOverridden
    | PreparationStarted
    | StepEvent
    | SessionCreated
    | RunQueued
    | HookEvent
    | RunClaimed
    | RunStarted
    | StopRequested
    | RunEnded
    | DescendantsSettled
    | RunAnnounced
    | AnnouncementAcknowledged
    | RunArchived
    | SpawnRefused
    | ContinuationEvent
)
