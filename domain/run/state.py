"""What is true of a run: the fold of its events."""

from datetime import datetime
from uuid import UUID

from msgspec import field

from domain.run.facts import (
    AttachmentsRequest,
    BatchFacts,
    Cleanup,
    ContextMode,
    Dependency,
    Disposition,
    Effect,
    EffectKind,
    ForkFacts,
    MessageCause,
    Plan,
    QueuedMessage,
    Requester,
    RespawnFacts,
    RunOutcome,
    SpawnOptions,
    StepName,
    StepState,
    TranscriptSeal,
    Usage,
)
from domain.run.lifecycle import OVER, RunStage
from domain.run.plan_facts import PreambleSizes
from domain.values.record import ContentRef, Fact
from domain.values.refusals import LostClaim, WrongStage

PAUSES = ("yielded", "steered")
"""The reasons of ends behind which the session goes on in the place of the run."""


class RecordedRefusal(Fact):
    """Why a spawn was refused, for the registry."""

    rule: str
    status: str
    step: str
    text: ContentRef | None = None
    inputs: dict[str, str | int | bool | None] = field(default_factory=dict)


class Inbox(Fact):
    """The announcement of a run: its text and what became of it."""

    disposition: Disposition
    reason: str | None = None
    status: str = ""
    text: ContentRef | None = None
    dedupe_key: str = ""
    position: int = 0
    created_at: datetime | None = None
    acknowledged_at: datetime | None = None
    origin: ContentRef | None = None
    first_position: int | None = None

    @property
    def announced_position(self) -> int:
        """Where it was announced. It stands further on in the inbox when a delivery of it was
        parked since."""
        return self.first_position or self.position


class Run(Fact):
    """The state of one run after some of its events. Times are UTC, `*_ms` milliseconds.

    `epoch` is the stream version of the event by which the present holder took the run; every
    write of a holder carries it, so that a holder that was replaced can write no more. `effects_at`
    is when the first of its `effects` is due, None when none is.

    Of a run that goes on with a session `continues` is the run before it, `opened_by` the one that
    the session began with, at `opened_at`. `put_away_from` is when it was said that the run is to
    be archived as soon as it is announced. `direct_delivery` is whether its runtime brings the
    result to `delivery_origin` itself.

    `queue` are the messages that wait until it is over. `yielded_by` is who asked it to end its
    turn, `wake_at` when its children had reported then; `steered_by` and `steered_at` who replaced
    what it was at last, or asked for that. `continuation_failed` is whether its session could not
    go on in its place, and `continuation_error` says why.

    `shares` is whether its spawn shares anything, which is read from its request. `waits_for` are
    those of its `dependencies` that are not met yet, `ancestors` the runs above it, recorded with
    dependencies alone; `dependencies_argument` are the names that it was to wait for, as JSON, when
    one of them stood for no run.
    """

    stage: RunStage = "unborn"
    version: int = 0
    last_event_id: UUID | None = None
    run_id: UUID
    session_id: UUID
    created_position: int
    created_at: datetime
    requester: Requester
    requested_agent_id: str | None = None
    agent_id: str | None = None
    label: str | None = None
    task: ContentRef
    preamble: ContentRef | None = None
    model_argument: ContentRef | None = None
    thinking_argument: ContentRef | None = None
    attachments: AttachmentsRequest | None = None
    thread: bool = False
    options: SpawnOptions
    config_revision: int
    holder: str | None = None
    epoch: int = 0
    attempt: int = 1
    overridden: bool = False
    child_session_key: str | None = None
    depth: int
    role: str | None = None
    control_scope: str | None = None
    plan: Plan | None = None
    warnings: tuple[str, ...] = ()
    lane: str | None = None
    lane_depth: int | None = None
    queued_position: int | None = None
    started_at: datetime | None = None
    system_prompt: ContentRef | None = None
    message: ContentRef | None = None
    stop_requested_by: str | None = None
    stop_by_requester: bool = False
    stop_reason: ContentRef | None = None
    outcome: RunOutcome | None = None
    end_reason: str | None = None
    ended_at: datetime | None = None
    runtime_ms: int | None = None
    result: ContentRef | None = None
    error: ContentRef | None = None
    usage: Usage | None = None
    transcript: TranscriptSeal | None = None
    pending_descendants: int = 0
    inbox: Inbox | None = None
    announced_at: datetime | None = None
    archive_at: datetime | None = None
    archived_at: datetime | None = None
    transcript_path: str | None = None
    refusal: RecordedRefusal | None = None
    delivery_origin: ContentRef | None = None
    steps: tuple[StepState, ...] = ()
    effects: tuple[Effect, ...] = ()
    effects_at: datetime | None = None
    continues: UUID | None = None
    opened_by: UUID | None = None
    continued_by: UUID | None = None
    put_away_from: datetime | None = None
    kept_context_mode: ContextMode | None = None
    direct_delivery: bool | None = None
    shares: bool | None = None
    dependencies: tuple[Dependency, ...] | None = None
    dependencies_argument: ContentRef | None = None
    ancestors: tuple[UUID, ...] | None = None
    waits_for: tuple[UUID, ...] | None = None
    batch: BatchFacts | None = None
    respawn: RespawnFacts | None = None
    preamble_sizes: PreambleSizes | None = None
    cause: MessageCause | None = None
    opened_at: datetime | None = None
    queue: tuple[QueuedMessage, ...] | None = None
    yielded_by: str | None = None
    steered_by: str | None = None
    steered_at: datetime | None = None
    wake_at: datetime | None = None
    continuation_failed: bool | None = None
    continuation_error: ContentRef | None = None

    @property
    def is_paused(self) -> bool:
        """Whether it has ended and is not to be announced, because its session goes on in its
        place: with what its children report, or with a message for which it was ended."""
        if self.stage != "ended" or self.stop_requested_by is not None or self.continuation_failed:
            return False
        return self.end_reason in PAUSES or self.is_steered

    @property
    def is_replaced(self) -> bool:
        """Whether its session goes on in its place: what came of it is told by the run behind."""
        return self.continued_by is not None and self.end_reason in PAUSES

    @property
    def is_steered(self) -> bool:
        """Whether the message that its session goes on with next is to replace what it is at."""
        return self.queue is not None and self.queue[0].cause == "steer"

    @property
    def is_of_same_agent(self) -> bool:
        """Whether the agent that will run is its requester's; only then does a child inherit."""
        return self.agent_id == self.requester.agent_id

    @property
    def takes_transcript_over(self) -> bool:
        """Whether it begins with the transcript of the run that it was respawned from."""
        return self.respawn is not None and self.respawn.transcript_up_to is not None

    @property
    def expects_completion(self) -> bool:
        """Whether its requester wants to be told of its end, and nobody else is told instead."""
        return self.options.expects_completion_message and not self.direct_delivery

    @property
    def cleanup(self) -> Cleanup:
        """What becomes of the session after the announcement."""
        return self.options.cleanup

    def step(self, name: StepName) -> StepState | None:
        """The step of this name, if it was begun."""
        for one in self.steps:
            if one.name == name:
                return one
        return None

    @property
    def inbox_target(self) -> ContentRef | None:
        """Where its announcement is to go from the inbox: by the word of a hook, else to the
        child's thread, else to where the requester is. What a sub-agent has asked for goes nowhere
        from there."""
        if self.requester.depth > 0:
            return None
        origin = self.inbox.origin if self.inbox is not None else None
        return origin or self.delivery_origin or self.requester.origin

    @property
    def is_parked(self) -> bool:
        """Whether its announcement is not sent to somebody any more who has not got it."""
        return any(one.phase == "parked" and one.kind == "webhook" for one in self.effects)

    def effects_of(self, kind: EffectKind) -> tuple[Effect, ...]:
        """Return the effects of a kind, in their order."""
        return tuple(one for one in self.effects if one.kind == kind)

    def effect(self, kind: EffectKind, name: str) -> Effect | None:
        """Return the effect of this kind and name, if the run has it."""
        return next((one for one in self.effects if (one.kind, one.name) == (kind, name)), None)

    @property
    def fork(self) -> ForkFacts | None:
        """What was taken over of the requester's conversation; None when that was not tried."""
        step = self.step("context_fork")
        return step.fork if step is not None else None

    @property
    def context_mode(self) -> ContextMode:
        """Whether the child begins with the requester's conversation: as it came to be, which is
        not always as it was asked for."""
        if self.fork is not None:
            return self.fork.mode
        return self.kept_context_mode or "isolated"


# Whether a command comes from whoever holds the run.


def must_hold(run: Run, epoch: int) -> None:
    """`WrongStage` when the run is over, `LostClaim` when `epoch` is not the present claim."""
    if run.stage in OVER:
        raise WrongStage("go on", run.stage)
    if run.epoch != epoch:
        raise LostClaim(run.epoch, epoch)
