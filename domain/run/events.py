"""What can happen to a run. The vocabulary only grows; a changed event gets a new version."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import field

from domain.run.facts import (
    AdmissionFacts,
    AttachmentsRequest,
    BatchFacts,
    Candidate,
    ContextMode,
    Dependency,
    Disposition,
    EffectKind,
    ForkFacts,
    HookName,
    Ingredient,
    MessageCause,
    ParkReason,
    Plan,
    PromptPart,
    QueuedMessage,
    Requester,
    RespawnFacts,
    RunOutcome,
    ScriptReceipt,
    SpawnOptions,
    StepName,
    StepOutcome,
    TranscriptSeal,
    UndoOutcome,
    Usage,
)
from domain.run.plan_facts import PlanFacts, PreambleSizes
from domain.values.record import ContentRef, Event, Fact
from domain.values.role import ControlScope, Role
from domain.values.rules import RefusalStatus
from domain.values.shared_values import SharedContextRequest, SharedKey

# The first and the last event of a spawn that was not to be; every spawn begins with the first.


class SpawnRequested(Event):
    """Somebody asked for a child. Carries what the admission was decided from.

    `requested_agent_id` is the normalised id that was asked for (the requester's own when none
    was given) and None when what was given is no agent id at all; the text that was given is then
    in `agent_id_argument`. Likewise `model_argument` and `thinking_argument`, for what is no name
    of a model and no level of thinking; `workspace_argument` is the folder that was asked for.
    `shared` is what is shared with the child, `dependencies` what it waits for; only with these
    there are `ancestors`, the runs above it, its requester's own first. When one of the names that
    it was to wait for stands for no run, or for several, there are none of them:
    `dependencies_argument` has all the names as they were given, as JSON.
    `batch` names the others that were asked for in the same request, `respawn` the earlier run that
    it was made from.
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
    shared: SharedContextRequest | None = None
    dependencies: tuple[Dependency, ...] = ()
    dependencies_argument: ContentRef | None = None
    ancestors: tuple[UUID, ...] = ()
    batch: BatchFacts | None = None
    respawn: RespawnFacts | None = None
    options: SpawnOptions
    facts: AdmissionFacts
    config_revision: int
    holder: str


class SpawnRefused(Event):
    """The spawn was not permitted or could not be prepared.

    `step` is where it failed, `text` what the caller was told, `inputs` what was compared; without
    a text one whose texts were erased by then.
    `announcement` is the inbox entry written when no caller was there to be told. `facts` is as
    much as had been looked at of what a plan is decided from; None when nothing was. `webhooks` are
    the ids of those that are sent the announcement.
    """

    rule: str
    status: RefusalStatus
    step: str
    text: ContentRef | None = None
    inputs: dict[str, str | int | bool | None] = field(default_factory=dict)
    announcement: ContentRef | None = None
    dedupe_key: str | None = None
    facts: PlanFacts | None = None
    webhooks: tuple[str, ...] = ()


# What can happen to an effect of a run outside the log.


class EffectAttempted(Event):
    """An effect was attempted; `status_code` is that of an answer, if there was one.

    If it succeeded, there is neither an `error` nor `retry_after_seconds`; an undo has an
    `outcome`: nothing of the step is left, or nothing that is the run's (`left_in_place`), or there
    is nobody any more who could be asked (`no_hook`). If it failed, it is attempted again
    `retry_after_seconds` later, or, without them, parked. A failure has no `error` if the texts of
    the session were erased by then.
    """

    kind: EffectKind
    name: str
    attempt: int
    status_code: int | None = None
    outcome: UndoOutcome | None = None
    error: ContentRef | None = None
    retry_after_seconds: int | None = None

    @property
    def has_failed(self) -> bool:
        """Return True unless the effect is done."""
        return self.error is not None or self.retry_after_seconds is not None


class EffectParked(Event):
    """It is not attempted any more after these `attempts`, unless somebody redrives it. `reason` is
    `attempts` when there were enough of them, `refused` when the receiver's answer was for good,
    `not_configured` when its configuration is gone, `erased` when its texts are."""

    kind: EffectKind
    name: str
    attempts: int
    reason: ParkReason


class EffectRedriven(Event):
    """A parked effect is attempted again, as often as at first."""

    kind: EffectKind
    name: str
    by: str
    reason: ContentRef


EffectEvent = EffectAttempted | EffectParked | EffectRedriven


# What can happen to a run by which a session goes on, and to the run before it.


class ContinuationFacts(Fact):
    """What the only rule on continuations was decided from: how many places of the session that
    spawned the child were taken, and how many there are."""

    active_children: int
    max_children: int


class MessageReceived(Event):
    """A session goes on with a message, in a new run.

    `continues` is the run before it, `opened_by` the one that the session began with. Who asked for
    the child, its key, options and where its results go are those of the run that is continued.
    `by` is who sent the message; with `cause` "wake" it tells the `completions` of these children.
    `queued` are the messages that wait still, `opened_at` is when the session began.
    """

    run_id: UUID
    session_id: UUID
    child_session_key: str
    continues: UUID
    opened_by: UUID
    requester: Requester
    agent_id: str
    depth: int
    label: str | None = None
    message: ContentRef
    model_argument: ContentRef | None = None
    thinking_argument: ContentRef | None = None
    thread: bool = False
    context_mode: ContextMode = "isolated"
    delivery_origin: ContentRef | None = None
    options: SpawnOptions
    facts: ContinuationFacts
    config_revision: int
    by: str
    cause: MessageCause = "message"
    completions: tuple[UUID, ...] = ()
    queued: tuple[QueuedMessage, ...] = ()
    opened_at: datetime


class ContinuationPlanned(Event):
    """The plan of a run that goes on with a session is fixed, anew: its caller is answered.

    `facts` is what the plan was decided from, `hooks` are those that are told of the run. With
    `direct_delivery` the runtime brings its result to where the thread is.
    """

    max_depth: int
    role: Role
    control_scope: ControlScope
    plan: Plan
    ingredients: tuple[Ingredient, ...]
    warnings: tuple[str, ...] = ()
    facts: PlanFacts
    hooks: tuple[HookName, ...] = ()
    direct_delivery: bool = False


class RunContinued(Event):
    """Another run goes on with the session: this one is put away when that one is."""

    run_id: UUID


class ArchiveScheduled(Event):
    """The run is put away as soon as it is announced: its session was closed, or the run that went
    on with it was put away."""

    reason: Literal["session_closed", "continuation_archived"]


class MessageQueued(Event):
    """A message to a session whose run is at work: it waits until that is over. With `cause`
    "steer" the run is ended for it. `run_id` is that of the run which will go on with it."""

    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause
    traceparent: str | None = None


class MessagesDropped(Event):
    """Nothing goes on with these messages any more: the session was stopped or closed."""

    run_ids: tuple[UUID, ...]


class YieldRequested(Event):
    """The run at work wants to end its turn, and to be woken by what its children report."""

    by: str


class ChildrenReported(Event):
    """Children of a run that has yielded are done: the session is to go on with what they report.
    None are named when the last one is done and has nothing to report."""

    run_ids: tuple[UUID, ...]


class ContinuationFailed(Event):
    """The session could not go on with run `run_id`, which was refused: `error` says why, None when
    its texts were erased."""

    run_id: UUID
    error: ContentRef | None = None


ContinuationEvent = (
    MessageReceived
    | ContinuationPlanned
    | RunContinued
    | ArchiveScheduled
    | MessageQueued
    | MessagesDropped
    | YieldRequested
    | ChildrenReported
    | ContinuationFailed
)


# What can happen to a step of a preparation.


class StepBegun(Event):
    """Something is about to be made for the child, for so many seconds at most.

    Recorded before anything is made, and again when another holder begins the step once more,
    with the same `key`. `root` is the real path of a folder, `relative` what is made below it.
    """

    step: StepName
    key: str
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


class StepTaken(Event):
    """It is made; `made` is False when it was there already or there was nothing to make.

    `manifest`, `file_count` and `total_bytes` are those of files that were written. `can_undo` is
    whether who made it has said how to unmake it, `token` what it gave to be told then. `origin`
    is where the child's results go by the word of who bound its thread, as JSON; `fork` what was
    taken over of the requester's conversation.
    """

    step: StepName
    made: bool = True
    outcome: StepOutcome
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: ContentRef | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None


StepEvent = StepBegun | StepTaken


# What happens to a run that waits for others before it may be queued.


class RunWaits(Event):
    """The run is prepared and waits until these are done; nobody holds it meanwhile."""

    run_ids: tuple[UUID, ...]


class DependencyMet(Event):
    """A run that was waited for is over, with all below it, as it was required to be."""

    run_id: UUID
    outcome: RunOutcome


WaitingEvent = RunWaits | DependencyMet


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
    """The child's key is minted; `steps` are those that will be taken for it, in their order."""

    child_session_key: str
    agent_id: str
    steps: tuple[StepName, ...] = ()


class SessionCreated(Event):
    """The child exists and its plan is fixed: the requester is answered.

    `facts` is what the plan was decided from. `hooks` are those
    that are told of the run, `delivery_origin` is where its results go by the word of who bound its
    thread, as JSON; None when that is for the requester to say. With `direct_delivery` the runtime
    brings them there, and the requester is not told. `preamble` is how much of the parent's words
    was kept; None when there were none.
    """

    child_session_key: str
    session_id: UUID
    agent_id: str
    depth: int
    max_depth: int
    role: Role
    control_scope: ControlScope
    plan: Plan
    ingredients: tuple[Ingredient, ...]
    warnings: tuple[str, ...] = ()
    note: str | None = None
    facts: PlanFacts
    hooks: tuple[HookName, ...] = ()
    delivery_origin: ContentRef | None = None
    context_mode: ContextMode = "isolated"
    direct_delivery: bool = False
    preamble: PreambleSizes | None = None


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
    """The runtime is about to execute, with this prompt and no other.

    `shared_context` is what of its family's context it was given, as that was at
    `shared_context_position`, where the run was claimed; None when nothing was shared.
    """

    runtime: str
    system_prompt: ContentRef
    message: ContentRef
    parts: tuple[PromptPart, ...]
    shared_context_position: int | None = None
    shared_context: tuple[SharedKey, ...] = ()


class StopRequested(Event):
    """Somebody asked a run that is held to stop; its holder ends it."""

    by: str
    by_requester: bool
    reason: ContentRef | None = None


class RunEnded(Event):
    """The run is over. The outcome comes from runtime signals, never from the model's text.
    `reason` is a fixed word (`exit`, `signal`, `timeout`, `stopped`, `interrupted`, `output_limit`,
    `not_executable`, `prompt_too_large`, `played`, `dependency_failed`, `shared_context`, `erased`,
    `yielded`, `steered`, `usage_limit`; of one that was executed outside `reported`, and
    `not_claimed` when nobody came for it). `alive_until` is the last sign of life of one whose
    holder is gone.
    """

    outcome: RunOutcome
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
    alive_until: datetime | None = None


class DescendantsSettled(Event):
    """The last descendant of an ended run is announced or refused, so it can be announced now."""


class RunAnnounced(Event):
    """The requester's inbox has the result (`inbox`), or needs none (`skipped`, `not_required`).
    `origin` is where it is to go from there, by the word of a hook, as JSON. `webhooks` are the ids
    of those that it is sent to."""

    disposition: Disposition
    reason: str | None = None
    status: str
    text: ContentRef | None = None
    dedupe_key: str
    origin: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class AnnouncementAcknowledged(Event):
    """The requester has taken the announcement."""

    by: str


class RunArchived(Event):
    """The run's session is put away; its transcript keeps existing under `transcript_path`."""

    reason: Literal["cleanup", "due"]
    transcript_path: str | None = None


RunEvent = (
    SpawnRequested
    | PreparationResumed
    | ScriptsResolved
    | AgentOverridden
    | PreparationStarted
    | StepEvent
    | SessionCreated
    | RunQueued
    | EffectEvent
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
    | WaitingEvent
)
