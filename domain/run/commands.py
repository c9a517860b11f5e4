"""What may be asked of a run. A holder's command carries the epoch of its claim.

`action` is what a command is called where the run is past it, or not there yet.
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
"""The longest pause between two attempts, if the configuration does not say."""


# What may be asked of the steps of a preparation.


class BeginStep(Command):
    """Something is about to be made, within `limit_seconds` from now on; below `root`, if it is
    files. Whoever goes on after a crash begins it once more, at the place on record."""

    action: ClassVar[str] = "begin a step"
    epoch: int
    step: StepName
    limit_seconds: float
    root: str | None = None
    relative: str | None = None


class TakeStep(Command):
    """It is made."""

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


# What may be asked of the effects of a run: by whoever attempted them, without a claim.


class ConfirmEffect(Command):
    """It succeeded."""

    action: ClassVar[str] = "confirm an effect"
    kind: EffectKind
    name: str
    status_code: int | None = None
    outcome: UndoOutcome | None = None


class NoteEffectFailure(Command):
    """An attempt failed. `attempt` counts from 1; one that is on record is not noted again. `error`
    is None when nothing can be kept of it any more. It is attempted again after 1, 2, 4 … seconds,
    `retry_seconds_max` at most, or after `pause_seconds` if that is later; not any more when it was
    `refused` for good or `attempts_max` were made, unless effects of its kind never stop."""

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
    """It is not to be attempted any more, for another reason than an attempt."""

    action: ClassVar[str] = "park an effect"
    kind: EffectKind
    name: str
    reason: Literal["not_configured", "erased"]


class RedriveEffects(Command):
    """What is parked of a kind is to be attempted again: one, or without its `name` each."""

    action: ClassVar[str] = "redrive effects"
    kind: EffectKind
    name: str | None
    by: str
    reason: ContentRef


EffectCommand = ConfirmEffect | NoteEffectFailure | ParkEffect | RedriveEffects


class ResumePreparation(Command):
    """Go on with a preparation; `lost_epoch` is the claim found without a living holder."""

    action: ClassVar[str] = "resume the preparation"
    holder: str
    lost_epoch: int
    reason: str


class ResolveScripts(Command):
    """Record the receipts; `override_to` is the winner among the candidates, if any."""

    action: ClassVar[str] = "resolve the scripts"
    epoch: int
    receipts: tuple[ScriptReceipt, ...]
    candidates: tuple[Candidate, ...]
    override_to: str | None


class StartPreparation(Command):
    """Mint the child's key and name what will be made, and by which steps."""

    action: ClassVar[str] = "start the preparation"
    epoch: int
    child_session_key: str
    agent_id: str
    steps: tuple[StepName, ...] = ()


class CreateSession(Command):
    """The child exists; with nothing to wait for it is queued at once. `hooks` are told of it.

    `shared` is what its spawn adds to the family's context, texts of the requester's session.
    `met` and `waits_for` are what was found of its dependencies when this is decided.
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
    """Look again at what a waiting run waits for: it is queued when all of it is met. When one
    failed, `error` is the text of how the run ends, which names that one, the `culprit`."""

    action: ClassVar[str] = "settle the dependencies"
    lane: str
    culprit: UUID | None = None
    error: ContentRef | None = None
    met: tuple[tuple[UUID, RunOutcome], ...] = ()
    waits_for: tuple[UUID, ...] = ()
    failed: UUID | None = None


class RefuseSpawn(Command):
    """The preparation failed; None as epoch is for those who may refuse without holding it. A spawn
    whose texts were erased is refused without a text."""

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
    """Take a queued run out of its lane, or over from a claim that lost its holder."""

    action: ClassVar[str] = "claim the run"
    holder: str
    lane_width: int = 0
    lane_running: int = 0
    lost_epoch: int | None = None


class StartRun(Command):
    """The guard stands and the prompt composed: the runtime executes once this is recorded.

    `shared_context` is what of its family's context the child is given; with `inherits` it takes
    the place of what its session was given before, and what its own children inherit.
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
    """Somebody wants the run to stop. `text` refuses a spawn that is still in preparation, and
    `announcement` tells its requester when no caller waits for the answer. A run whose texts were
    erased is stopped without any."""

    action: ClassVar[str] = "stop the run"
    by: str
    by_requester: bool
    reason: ContentRef | None = None
    text: ContentRef | None = None
    announcement: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class EndRun(Command):
    """What came of the run, from its runtime. `lost_epoch` when somebody else ends it,
    which knows when it last showed a sign of life, `alive_until`."""

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
    """Tell the requester, or record why it need not be told. `origin` is where a hook sends it."""

    action: ClassVar[str] = "announce the run"
    disposition: Disposition
    reason: str | None
    status: str
    text: ContentRef | None
    pending_descendants: int
    origin: ContentRef | None = None
    webhooks: tuple[str, ...] = ()


class AcknowledgeAnnouncement(Command):
    """The requester has taken it, as it stood in the inbox at `position`; None for as it is."""

    action: ClassVar[str] = "acknowledge the announcement"
    by: str
    position: int | None = None


class ArchiveRun(Command):
    """Put the session away."""

    action: ClassVar[str] = "archive the run"
    reason: Literal["cleanup", "due"]
    transcript_path: str | None


class ScheduleArchive(Command):
    """Put the run away as soon as it is announced; the session of one that was closed is closed."""

    action: ClassVar[str] = "close the session"
    reason: Literal["session_closed", "continuation_archived"]


class QueueMessage(Command):
    """A message to a run at work waits until that is over; one that steers ends it. `run_id` is
    minted for the run that will go on with it, `at` is now."""

    action: ClassVar[str] = "queue a message"
    run_id: UUID
    message: ContentRef
    by: str
    cause: MessageCause
    at: datetime
    traceparent: str | None = None


class YieldRun(Command):
    """The run at work ends its turn and waits for its children. `awaits` is whether there is
    anything that it can wait for."""

    action: ClassVar[str] = "yield"
    by: str
    awaits: bool


class DropMessage(Command):
    """The message that is to become run `run_id` is not taken. No-op if it does not wait."""

    action: ClassVar[str] = "drop a message"
    run_id: UUID


class FailContinuation(Command):
    """The run that was to go on with the session was refused."""

    action: ClassVar[str] = "note that the session could not go on"
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
