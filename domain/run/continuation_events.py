"""What can happen to a run by which a session goes on, and to the run before it."""

from typing import Literal
from uuid import UUID

from domain.content import ContentRef
from domain.run.facts import ContextMode, Ingredient, Plan, Requester, SpawnOptions
from domain.run.hook_events import HookName
from domain.run.plan_facts import PlanFacts
from domain.values.record import Event, Fact


class ContinuationFacts(Fact):
    """What the only rule on continuations was decided from: how many places of the session that
    spawned the child were taken, and how many there are."""

    active_children: int
    max_children: int


class MessageReceived(Event):
    """Somebody sent a message to a session whose run is over: a new run is to go on with it.

    `continues` is that run, `opened_by` the one that the session began with. Who asked for the
    child, its key, options and where its results go are those of the run that is continued. `by` is
    who sent the message.
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
    light_context: bool = False
    thread: bool = False
    context_mode: ContextMode = "isolated"
    delivery_origin: ContentRef | None = None
    options: SpawnOptions
    facts: ContinuationFacts
    config_revision: int
    by: str


class ContinuationPlanned(Event):
    """The plan of a run that goes on with a session is fixed, anew: its caller is answered.

    `facts` is what the plan was decided from, `hooks` are those that are told of the run. With
    `direct_delivery` the runtime brings its result to where the thread is.
    """

    max_depth: int
    role: Literal["main", "orchestrator", "leaf"]
    control_scope: Literal["children", "none"]
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


ContinuationEvent = MessageReceived | ContinuationPlanned | RunContinued | ArchiveScheduled
