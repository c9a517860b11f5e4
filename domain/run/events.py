"""Events of a run. The set only grows; a changed event gets a new version."""

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

# Requests and refusals of spawns.


class SpawnRequested(Event):
    """Request for a child, with the facts that admission was decided from. Every spawn begins here.

    Attributes:
        requested_agent_id: Normalized agent id of the request; the requester's own if none was
            given, None if the given text is not an agent id.
        agent_id_argument: The given text, if it is not an agent id.
        model_argument: The given text, if it is not the name of a model.
        thinking_argument: The given text, if it is not a thinking level.
        workspace_argument: The requested folder.
        shared: Context that the spawn shares.
        dependencies: Runs to wait for. Empty if any of the given names matches no run or several.
        dependencies_argument: In that case, all given names as JSON.
        ancestors: With dependencies only: the runs above the child, its requester's own first.
        batch: The place among the runs of the same request.
        respawn: The earlier run that the request was made from.
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
    """Refusal of a spawn that was not permitted or could not be prepared.

    Attributes:
        step: Where it failed.
        text: The message returned to the caller; None if the run's texts were erased.
        inputs: The values that the rule compared.
        announcement: The inbox entry, if no caller was waiting for the answer.
        facts: The planning facts collected until then; None if there were none yet.
        webhooks: Ids of the webhooks that receive the announcement.
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


# Effects of a run outside the log.


class EffectAttempted(Event):
    """An attempt at an effect; `status_code` is the HTTP status of the answer, if there was one.

    A success has neither `error` nor `retry_after_seconds`. A failure is retried after
    `retry_after_seconds`; without them it is parked. A failure has no `error` if the texts of the
    session were erased by then.

    A successful undo has an `outcome`: everything is removed, the remains are not the run's
    (`left_in_place`), or the hook that could undo it is not configured anymore (`no_hook`).
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
        """Return True if the attempt failed."""
        return self.error is not None or self.retry_after_seconds is not None


class EffectParked(Event):
    """End of the retries of an effect, after `attempts` attempts, unless it is redriven.

    `reason` is `attempts` if the limit was reached, `refused` if the receiver refused permanently,
    `not_configured` if its configuration is gone, and `erased` if its texts were erased.
    """

    kind: EffectKind
    name: str
    attempts: int
    reason: ParkReason


class EffectRedriven(Event):
    """Retry of a parked effect, with the full number of attempts again."""

    kind: EffectKind
    name: str
    by: str
    reason: ContentRef


EffectEvent = EffectAttempted | EffectParked | EffectRedriven


# Continuation of a session: the run that continues it, and the run before that.


class ContinuationFacts(Fact):
    """Facts for the only admission rule of a message: active children of the requester, and cap."""

    active_children: int
    max_children: int


class MessageReceived(Event):
    """Continuation of a session by a message, in a new run.

    Requester, session key, options and delivery origin are those of the continued run.

    Attributes:
        continues: The run before it.
        opened_by: The first run of the session.
        opened_at: When the session began.
        by: The sender of the message.
        completions: With `cause` "wake": the children whose results the message reports.
        queued: The messages that are still waiting.
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
    """New plan of a run that continues a session; the caller is answered now.

    Attributes:
        facts: The facts that the plan was decided from.
        hooks: The hooks to call for this run.
        direct_delivery: True if the runtime itself delivers the result to the thread.
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
    """Continuation of the session by run `run_id`; this run is archived after that one."""

    run_id: UUID


class ArchiveScheduled(Event):
    """Order to archive the run as soon as it is announced.

    Its session was closed, or the run that continued it was archived.
    """

    reason: Literal["session_closed", "continuation_archived"]


class MessageQueued(Event):
    """Message to a session with an active run; it waits until that run is over.

    With `cause` "steer" the active run is ended for it. `run_id` is the id of the run that will
    process the message.
    """

    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause
    traceparent: str | None = None


class MessagesDropped(Event):
    """Removal of queued messages: they were dropped, or the session was stopped or closed."""

    run_ids: tuple[UUID, ...]


class YieldRequested(Event):
    """Request of a started run to end its turn and be woken when its children report."""

    by: str


class ChildrenReported(Event):
    """Reports of children of a yielded run: the session is to continue with them.

    `run_ids` is empty if the last child is done and has nothing to report.
    """

    run_ids: tuple[UUID, ...]


class ContinuationFailed(Event):
    """Refusal of run `run_id`, which was to continue the session.

    `error` is the reason; None if the texts were erased or the message was dropped.
    """

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


# Preparation steps.


class StepBegun(Event):
    """Start of a preparation step, recorded before anything is made for the child.

    Recorded again with the same `key` if another holder restarts the step. The step takes at most
    `limit_seconds`. `root` is the real path of a folder, `relative` the path to make below it.
    """

    step: StepName
    key: str
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


class StepTaken(Event):
    """Completion of a preparation step.

    Attributes:
        made: False if the result existed already, or there was nothing to make.
        manifest: For written files; so are `file_count` and `total_bytes`.
        can_undo: True if the hook that performed the step can undo it.
        token: A value from that hook, to be sent back with the undo.
        origin: Where the hook that bound the thread wants results delivered, as JSON.
        fork: The copied part of the requester's conversation.
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


# Dependencies.


class RunWaits(Event):
    """Wait of a prepared run for its dependencies; it has no holder meanwhile."""

    run_ids: tuple[UUID, ...]


class DependencyMet(Event):
    """End of a dependency and of all runs below it, with an outcome that meets the requirement."""

    run_id: UUID
    outcome: RunOutcome


WaitingEvent = RunWaits | DependencyMet


class PreparationResumed(Event):
    """Takeover of a preparation whose holder is gone."""

    holder: str
    attempt: int
    reason: str


class ScriptsResolved(Event):
    """Receipts of all context scripts; each has run, failed or been skipped."""

    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...] = ()


class AgentOverridden(Event):
    """Override of the requested agent by the winning proposal of a context script."""

    from_agent_id: str
    to_agent_id: str
    candidates: tuple[Candidate, ...]


class PreparationStarted(Event):
    """Start of the preparation: the child's key is minted, and the `steps` are listed in order."""

    child_session_key: str
    agent_id: str
    steps: tuple[StepName, ...] = ()


class SessionCreated(Event):
    """Creation of the child session with its final plan; the requester is answered now.

    Attributes:
        facts: The facts that the plan was decided from.
        hooks: The hooks to call for this run.
        delivery_origin: Where the hook that bound the thread wants results delivered, as JSON;
            None if the requester decides.
        direct_delivery: True if the runtime delivers results there and nothing is announced to the
            requester.
        preamble: How much of the parent's preamble was kept; None without a preamble.
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
    """Entry of the run into its lane; the position of this event is its place in the lane."""

    lane: str
    lane_depth: int


class RunClaimed(Event):
    """Claim of the run by a holder. The stream version of this event is the epoch of the claim.

    `lane_width` and `lane_running` are the numbers compared; None if the run was taken over from a
    lost holder, because its slot was occupied already.
    """

    holder: str
    attempt: int
    lane_width: int | None = None
    lane_running: int | None = None


class RunStarted(Event):
    """Start of the runtime, with exactly this prompt.

    `shared_context` is the family's context that the run receives, as of
    `shared_context_position`, the position of its claim. The position is None if there was no
    shared context to read.
    """

    runtime: str
    system_prompt: ContentRef
    message: ContentRef
    parts: tuple[PromptPart, ...]
    shared_context_position: int | None = None
    shared_context: tuple[SharedKey, ...] = ()


class StopRequested(Event):
    """Request to the holder of a run to stop it, or to a paused run not to continue."""

    by: str
    by_requester: bool
    reason: ContentRef | None = None


class RunEnded(Event):
    """End of the run. The outcome comes from runtime signals, never from the model's text.

    `reason` is a fixed word: `exit`, `signal`, `timeout`, `stopped`, `interrupted`, `output_limit`,
    `not_executable`, `prompt_too_large`, `played`, `dependency_failed`, `shared_context`, `erased`,
    `yielded`, `steered` or `usage_limit`. For an external run it can also be `reported`, or
    `not_claimed` if no executor claimed it. If the holder is lost, `alive_until` is the last sign
    of life.
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
    """Settlement of the last descendant of an ended run, which can now be announced."""


class RunAnnounced(Event):
    """Announcement of the result in the requester's inbox, or the decision that it needs none.

    Attributes:
        disposition: `inbox`, or without an announcement `skipped` or `not_required`.
        origin: Where a hook wants the announcement delivered, as JSON.
        webhooks: Ids of the webhooks that receive it.
    """

    disposition: Disposition
    reason: str | None = None
    status: str
    text: ContentRef | None = None
    dedupe_key: str
    origin: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class AnnouncementAcknowledged(Event):
    """Acknowledgment of the announcement by the requester."""

    by: str


class RunArchived(Event):
    """Archiving of the run; its transcript is kept at `transcript_path`."""

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
