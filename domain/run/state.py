"""State of a run: the fold of its events."""

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
"""End reasons after which another run continues the session in place of this one."""


class RecordedRefusal(Fact):
    """Reason why a spawn was refused, for the registry."""

    rule: str
    status: str
    step: str
    text: ContentRef | None = None
    inputs: dict[str, str | int | bool | None] = field(default_factory=dict)


class Inbox(Fact):
    """Announcement of a run: its text and its delivery state."""

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
        """Return the log position of the announcement.

        `position` is later if a delivery was parked since, which returns it to the inbox.
        """
        return self.first_position or self.position


class Run(Fact):
    """State of one run after some of its events. Times are UTC, `*_ms` are milliseconds.

    Attributes:
        epoch: Stream version of the event by which the current holder took the run. Every write of
            a holder carries it, so that a replaced holder can write nothing more.
        effects_at: When the first of its `effects` is due; None if none is.
        continues: The run before it in the same session.
        opened_by: The first run of the session, which began at `opened_at`.
        put_away_from: Time of the order to archive the run right after its announcement.
        direct_delivery: True if its runtime itself delivers the result to `delivery_origin`.
        queue: Messages that wait until the run is over.
        yielded_by: The caller that ended its turn.
        wake_at: When its children first reported after that.
        steered_by: The last caller that steered the session, at `steered_at`.
        continuation_failed: True if no run could continue the session in its place;
            `continuation_error` is the reason.
        shares: True if its spawn shares context, which is stored in its request.
        waits_for: Those of its `dependencies` that are not met yet.
        ancestors: The runs above it; recorded only with dependencies.
        dependencies_argument: All given names of dependencies as JSON, if one of them matched no
            run or several.
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
        """Return True if the run ended without an announcement because its session will continue.

        It continues with reports of its children, or with the message that steered the run.
        """
        if self.stage != "ended" or self.stop_requested_by is not None or self.continuation_failed:
            return False
        return self.end_reason in PAUSES or self.is_steered

    @property
    def is_replaced(self) -> bool:
        """Return True if another run continued the session in its place and reports the result."""
        return self.continued_by is not None and self.end_reason in PAUSES

    @property
    def is_steered(self) -> bool:
        """Return True if the next queued message steers the run."""
        return self.queue is not None and self.queue[0].cause == "steer"

    @property
    def is_of_same_agent(self) -> bool:
        """Return True if the run has the agent of its requester; only then does it inherit."""
        return self.agent_id == self.requester.agent_id

    @property
    def takes_transcript_over(self) -> bool:
        """Return True if it begins with the transcript of the run that it was respawned from."""
        return self.respawn is not None and self.respawn.transcript_up_to is not None

    @property
    def expects_completion(self) -> bool:
        """Return True if the requester wants an announcement and there is no direct delivery."""
        return self.options.expects_completion_message and not self.direct_delivery

    @property
    def cleanup(self) -> Cleanup:
        """Return the cleanup option: `delete` archives right after the announcement."""
        return self.options.cleanup

    def step(self, name: StepName) -> StepState | None:
        """Return the step of this name, or None if it was not begun."""
        for step in self.steps:
            if step.name == name:
                return step
        return None

    @property
    def inbox_target(self) -> ContentRef | None:
        """Return the addresses that the announcement goes to from the inbox, as JSON.

        The first that exists: the origin set by a hook, the child's thread, the requester's
        addresses. None if the requester is itself a sub-agent.
        """
        if self.requester.depth > 0:
            return None
        origin = self.inbox.origin if self.inbox is not None else None
        return origin or self.delivery_origin or self.requester.origin

    @property
    def is_parked(self) -> bool:
        """Return True if delivery of the announcement to some webhook is parked."""
        return any(effect.phase == "parked" and effect.kind == "webhook" for effect in self.effects)

    def effects_of(self, kind: EffectKind) -> tuple[Effect, ...]:
        """Return the effects of a kind, in order."""
        return tuple(effect for effect in self.effects if effect.kind == kind)

    def effect(self, kind: EffectKind, name: str) -> Effect | None:
        """Return the effect of this kind and name, or None if the run has none."""
        return next(
            (effect for effect in self.effects if (effect.kind, effect.name) == (kind, name)), None
        )

    @property
    def fork(self) -> ForkFacts | None:
        """Return the copied part of the requester's conversation; None if no fork was tried."""
        step = self.step("context_fork")
        return step.fork if step is not None else None

    @property
    def context_mode(self) -> ContextMode:
        """Return the actual context mode, which may differ from the requested one."""
        if self.fork is not None:
            return self.fork.mode
        return self.kept_context_mode or "isolated"


def require_holder(run: Run, epoch: int) -> None:
    """Raise unless a command comes from the current holder of the run.

    Raises:
        WrongStage: The run is over.
        LostClaim: `epoch` is not that of the current claim.
    """
    if run.stage in OVER:
        raise WrongStage("continue", run.stage)
    if run.epoch != epoch:
        raise LostClaim(run.epoch, epoch)
