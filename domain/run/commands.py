"""Commands to a run. A command from a holder carries the epoch of its claim.

`action` names the command in the error message of `WrongStage`.
"""

from datetime import datetime
from typing import ClassVar, Literal
from uuid import UUID

from msgspec import field

from domain.run.facts import (
    Candidate,
    Disposition,
    EffectKind,
    ForkFacts,
    HookName,
    Ingredient,
    MessageCause,
    Plan,
    PromptPart,
    RunOutcome,
    ScriptReceipt,
    StepName,
    StepOutcome,
    TranscriptSeal,
    UndoOutcome,
    Usage,
)
from domain.run.plan_facts import PlanFacts, PreambleSizes
from domain.values.record import Command, ContentRef
from domain.values.role import ControlScope, Role
from domain.values.rules import RefusalStatus
from domain.values.shared_values import SharedChange, SharedKey

RETRY_SECONDS_MAX = 3600
"""Default for the longest pause between two attempts."""


# Preparation steps.


class BeginStep(Command):
    """Begin a preparation step, which takes at most `limit_seconds` from now.

    Files are made below `root`. After a crash the next holder begins the step again, at the
    recorded place.
    """

    action: ClassVar[str] = "begin a step"
    epoch: int
    step: StepName
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


class TakeStep(Command):
    """Record that a step is done; `made` is False if there was nothing to make."""

    action: ClassVar[str] = "take a step"
    epoch: int
    step: StepName
    outcome: StepOutcome
    made: bool = True
    manifest: ContentRef | None = None
    file_count: int | None = None
    total_bytes: int | None = None
    can_undo: bool = False
    origin: ContentRef | None = None
    fork: ForkFacts | None = None
    token: ContentRef | None = None


StepCommand = BeginStep | TakeStep


# Effects. These commands need no claim: any server that attempted an effect may send them.


class ConfirmEffect(Command):
    """Record that an effect succeeded."""

    action: ClassVar[str] = "confirm an effect"
    kind: EffectKind
    name: str
    status_code: int | None = None
    outcome: UndoOutcome | None = None


class NoteEffectFailure(Command):
    """Record a failed attempt, and retry or park the effect. No-op if the attempt is recorded.

    Retries follow after 1, 2, 4 … seconds, up to `retry_seconds_max`, or after `pause_seconds` if
    that is longer. If the receiver `refused` permanently or `attempts_max` is reached, the effect
    is parked, unless effects of its kind are retried forever.

    Attributes:
        attempt: Number of the attempt, from 1.
        error: The reason; None if the texts of the session were erased.
    """

    action: ClassVar[str] = "note that an effect failed"
    kind: EffectKind
    name: str
    attempt: int
    error: ContentRef | None
    status_code: int | None = None
    refused: bool = False
    attempts_max: int = 1
    retry_seconds_max: int = RETRY_SECONDS_MAX
    pause_seconds: int = 0


class ParkEffect(Command):
    """Park an effect for a reason other than failed attempts."""

    action: ClassVar[str] = "park an effect"
    kind: EffectKind
    name: str
    reason: Literal["not_configured", "erased"]


class RedriveEffects(Command):
    """Retry the parked effect of this kind and `name`, or all of the kind if `name` is None."""

    action: ClassVar[str] = "redrive effects"
    kind: EffectKind
    name: str | None
    by: str
    reason: ContentRef


EffectCommand = ConfirmEffect | NoteEffectFailure | ParkEffect | RedriveEffects


class ResumePreparation(Command):
    """Take over a preparation; `lost_epoch` is the claim whose holder is gone."""

    action: ClassVar[str] = "resume the preparation"
    holder: str
    lost_epoch: int
    reason: str


class ResolveScripts(Command):
    """Record the script receipts; `override_to` is the winning candidate, if any."""

    action: ClassVar[str] = "resolve the scripts"
    epoch: int
    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...]
    override_to: str | None


class StartPreparation(Command):
    """Record the child's new key and the steps that will be taken."""

    action: ClassVar[str] = "start the preparation"
    epoch: int
    child_session_key: str
    agent_id: str
    steps: tuple[StepName, ...] = ()


class CreateSession(Command):
    """Create the child session, and queue the run unless it waits for dependencies.

    Attributes:
        hooks: The hooks to call for this run.
        shared: Keys that the spawn adds to the family's context; their values are texts of the
            requester's session.
        met: Dependencies that are met, with their outcomes; filled in when this is decided.
        waits_for: Dependencies that are not met yet; filled in when this is decided.
    """

    action: ClassVar[str] = "create the session"
    epoch: int
    depth: int
    max_depth: int
    role: Role
    control_scope: ControlScope
    plan: Plan
    ingredients: tuple[Ingredient, ...]
    warnings: tuple[str, ...]
    note: str | None
    lane: str
    facts: PlanFacts
    hooks: tuple[HookName, ...] = ()
    direct_delivery: bool = False
    preamble: PreambleSizes | None = None
    shared: tuple[SharedChange, ...] = ()
    met: tuple[tuple[UUID, RunOutcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()


class SettleDependencies(Command):
    """Check the dependencies of a waiting run, and queue it if all are met.

    If one has failed, the run ends with the text `error`, which names that run, the `culprit`.
    """

    action: ClassVar[str] = "settle the dependencies"
    lane: str
    culprit: UUID | None = None
    error: ContentRef | None = None
    met: tuple[tuple[UUID, RunOutcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()
    failed: UUID | None = None


class RefuseSpawn(Command):
    """Refuse a spawn.

    `epoch` is None if the caller may refuse without holding the run. `text` is None if the texts of
    the run were erased.
    """

    action: ClassVar[str] = "refuse the spawn"
    epoch: int | None
    rule: str
    status: RefusalStatus
    step: str
    text: ContentRef | None = None
    inputs: dict[str, str | int | bool | None] = field(default_factory=dict)
    announcement: ContentRef | None = None
    facts: PlanFacts | None = None
    webhooks: tuple[str, ...] = ()


class ClaimRun(Command):
    """Claim a queued run from its lane, or take it over from a claim that lost its holder."""

    action: ClassVar[str] = "claim the run"
    holder: str
    lane_width: int = 0
    lane_running: int = 0
    lost_epoch: int | None = None


class StartRun(Command):
    """Start the runtime; it executes as soon as this is recorded.

    By now the guard process is ready and the prompt is composed. `shared_context` is the family's
    context that the child receives. With `inherits` it replaces what the session received before,
    and is what its own children inherit.
    """

    action: ClassVar[str] = "start the run"
    epoch: int
    runtime: str
    system_prompt: ContentRef
    message: ContentRef
    parts: tuple[PromptPart, ...]
    shared_context_position: int | None = None
    shared_context: tuple[SharedKey, ...] = ()
    inherits: bool = False


class StopRun(Command):
    """Stop the run.

    All texts are None if the texts of the run were erased.

    Attributes:
        text: The refusal text, in case the spawn is still in preparation.
        announcement: The announcement of that refusal, if no caller waits for the answer.
    """

    action: ClassVar[str] = "stop the run"
    by: str
    by_requester: bool
    reason: ContentRef | None = None
    text: ContentRef | None = None
    announcement: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class EndRun(Command):
    """End the run with the outcome reported by its runtime.

    If its holder is lost, another server ends it and gives the last sign of life, `alive_until`.
    """

    action: ClassVar[str] = "end the run"
    epoch: int
    outcome: RunOutcome
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    result: ContentRef | None = None
    error: ContentRef | None = None
    usage: Usage | None = None
    transcript: TranscriptSeal | None = None
    pending_descendants: int = 0
    alive_until: datetime | None = None


class AnnounceRun(Command):
    """Announce the result, or record why no announcement is needed.

    `origin` is the delivery target set by a hook.
    """

    action: ClassVar[str] = "announce the run"
    disposition: Disposition
    reason: str | None
    status: str
    text: ContentRef | None
    pending_descendants: int
    origin: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class AcknowledgeAnnouncement(Command):
    """Acknowledge the announcement as of inbox `position`; None acknowledges the current one."""

    action: ClassVar[str] = "acknowledge the announcement"
    by: str
    position: int | None = None


class ArchiveRun(Command):
    """Archive the run."""

    action: ClassVar[str] = "archive the run"
    reason: Literal["cleanup", "due"]
    transcript_path: str | None


class ScheduleArchive(Command):
    """Archive the run as soon as it is announced; reason `session_closed` closes its session."""

    action: ClassVar[str] = "close the session"
    reason: Literal["session_closed", "continuation_archived"]


class QueueMessage(Command):
    """Queue a message until the active run is over; with cause "steer", end the run for it.

    `run_id` is a new id for the run that will process the message, `at` the current time.
    """

    action: ClassVar[str] = "queue a message"
    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause
    at: datetime
    traceparent: str | None = None


class YieldRun(Command):
    """End the turn of a started run, which then waits for its children.

    `awaits` is True if there is a child to wait for.
    """

    action: ClassVar[str] = "yield"
    by: str
    awaits: bool


class DropMessage(Command):
    """Drop the queued message that would become run `run_id`; no-op if it does not wait."""

    action: ClassVar[str] = "drop a message"
    run_id: UUID


class FailContinuation(Command):
    """Record that the run that was to continue the session was refused."""

    action: ClassVar[str] = "record that the session could not continue"
    run_id: UUID
    error: ContentRef | None


RunCommand = (
    ResumePreparation
    | ResolveScripts
    | StartPreparation
    | StepCommand
    | EffectCommand
    | CreateSession
    | SettleDependencies
    | RefuseSpawn
    | ClaimRun
    | StartRun
    | StopRun
    | EndRun
    | AnnounceRun
    | AcknowledgeAnnouncement
    | ArchiveRun
    | ScheduleArchive
    | QueueMessage
    | YieldRun
    | DropMessage
    | FailContinuation
)
