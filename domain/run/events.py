"""What can happen to a run. The vocabulary only grows; a changed event gets a new version."""

from typing import Literal
from uuid import UUID

from domain.content import ContentRef
from domain.run.continuation_events import ContinuationEvent
from domain.run.facts import (
    Candidate,
    ContextMode,
    Ingredient,
    Plan,
    PromptPart,
    RunOutcome,
    ScriptReceipt,
    TranscriptSeal,
    Usage,
)
from domain.run.hook_events import HookEvent, HookName
from domain.run.plan_facts import PlanFacts, PreambleSizes
from domain.run.request_events import SpawnRefused, SpawnRequested
from domain.run.step_events import StepEvent
from domain.run.steps import StepName
from domain.run.waiting_events import WaitingEvent
from domain.values.record import Event
from domain.values.shared_values import SharedKey


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
    brings them there, and the requester is not told. `preamble` is how much of the parent's words
    was kept; None when there were none.
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
    `not_executable`, `prompt_too_large`, `played`, `dependency_failed`,
    `shared_context`, `erased`).
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
    | WaitingEvent
)
