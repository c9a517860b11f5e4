"""What is decided of a child, as functions of the facts so far.

A stage gives the facts with what it has decided, or a refusal, or a need: something that must be
looked up or done before it can decide. What comes of that is one more fact, and the stages are gone
through again. A server does what is needed and records it; after a crash another goes on from what
is on record; a what-if takes it from the record, or says that it is not there.

`domain/spawn/stages.py` has their order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec

from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.plan.child import (
    PlannedChild,
    RefusedChild,
    frame_plan,
    plan_with_hours,
    settle_workspace,
)
from domain.plan.credentials import FoundCredentials
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY, EligibilityTable
from domain.plan.request import ChosenWorkspace, PlanRequest, shape_of
from domain.run.facts import StepName
from domain.run.state import Run
from domain.values.record import Fact
from domain.values.refusals import Refusal

FRAMES_MAX = 256
"""So many plans are kept, each without its folder: one for an agent, a revision of the
configuration, its credentials and a shape of request."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that has to be known before a stage can decide.

    Attributes:
        what: `agent`, the agent that will run, once its context scripts have been run;
            `credentials` and `workspace`, those of that agent; `places`, whether there is anything
            to do for each step, in their order up to the first that cannot be taken; `step`, what
            came of a step that was taken.
        step: The step, for the last.
    """

    what: Literal["agent", "credentials", "workspace", "places", "step"]
    step: StepName | None = None


class ChildFacts(Fact):
    """What is known of a child so far; None stands for what nobody has looked at.

    Attributes:
        run: Its run, as it was admitted.
        configuration: The configuration that it is decided under.
        requester_sandboxed: Whether the session that asks for it is in a sandbox.
        thinking_argument: The text of a level of thinking that is none.
        agent_id: The agent that will run.
        credentials: Those of this agent.
        workspace: The folder that was chosen.
        frame: Its plan without the folder.
        planned: Its plan.
        places: For each step, whether there is anything to do, or why it cannot be done; those
            behind one that cannot be done are left out.
        taken: What came of each step that was taken: None, or a refusal.
    """

    run: Run
    configuration: Configuration
    requester_sandboxed: bool
    thinking_argument: str | None = None
    agent_id: str | None = None
    credentials: FoundCredentials | None = None
    workspace: ChosenWorkspace | None = None
    frame: PlannedChild | None = None
    planned: PlannedChild | None = None
    places: Mapping[StepName, bool | Refusal] | None = None
    taken: Mapping[StepName, Refusal | None] = msgspec.field(default_factory=dict)

    @property
    def plan(self) -> PlannedChild:
        """Return its plan, once that is decided."""
        assert self.planned is not None
        return self.planned

    @property
    def agent(self) -> EffectiveAgent:
        """Return the agent that will run, as it is configured."""
        assert self.agent_id is not None
        return self.configuration.effective_agent(self.agent_id)

    def with_step(self, step: StepName, refusal: Refusal | None) -> "ChildFacts":
        """Return the facts with what came of a step."""
        return self.changed({"taken": {**self.taken, step: refusal}})


Decided = ChildFacts | RefusedChild | Need
"""The facts with what was decided, a refusal, or what has to be known first."""


def choose_agent(facts: ChildFacts) -> Decided:
    """Decide which agent runs: the one that was asked for, or that a context script named."""
    return Need("agent") if facts.agent_id is None else facts


def frame_spawn(facts: ChildFacts) -> Decided:
    """Decide how a child runs, but for its folder: that is the same for all requests of a shape."""
    # A text that can be erased is not kept.
    return _framed(facts, ELIGIBILITY, is_kept=facts.thinking_argument is None)


def frame_message(facts: ChildFacts) -> Decided:
    """Decide how a session goes on, but for its folder."""
    return _framed(facts, CONTINUED_ELIGIBILITY, is_kept=False)


def _framed(facts: ChildFacts, table: EligibilityTable, *, is_kept: bool) -> Decided:
    if facts.frame is not None:
        return facts
    if facts.credentials is None:
        return Need("credentials")
    request = _plan_request(facts, facts.credentials)
    frame = _kept_frame(request) if is_kept else frame_plan(table, request)
    return frame if isinstance(frame, RefusedChild) else facts.changed({"frame": frame})


@lru_cache(maxsize=FRAMES_MAX)
def _kept_frame(request: PlanRequest) -> PlannedChild | RefusedChild:
    return frame_plan(ELIGIBILITY, request)


def settle_spawn(facts: ChildFacts) -> Decided:
    """Decide whether a child can work in its folder."""
    return _settled(facts, ELIGIBILITY)


def settle_message(facts: ChildFacts) -> Decided:
    """Decide whether a session can go on in its folder."""
    return _settled(facts, CONTINUED_ELIGIBILITY)


def _settled(facts: ChildFacts, table: EligibilityTable) -> Decided:
    if facts.planned is not None:
        return facts
    if facts.workspace is None:
        return Need("workspace")
    assert facts.frame is not None
    assert facts.credentials is not None
    request = _plan_request(facts, facts.credentials, facts.workspace)
    planned = settle_workspace(table, facts.frame, request)
    if isinstance(planned, RefusedChild):
        return planned
    plan = plan_with_hours(planned.plan, facts.run, facts.configuration)
    warnings = (*planned.warnings, *facts.workspace.warnings)
    return facts.changed({"planned": planned.changed({"plan": plan, "warnings": warnings})})


def _plan_request(
    facts: ChildFacts, credentials: FoundCredentials, workspace: ChosenWorkspace | None = None
) -> PlanRequest:
    return PlanRequest(
        shape=shape_of(facts.run),
        agent=facts.agent,
        requester_sandboxed=facts.requester_sandboxed,
        thinking_argument=facts.thinking_argument,
        credentials=credentials,
        chosen=workspace,
    )


def place_steps(facts: ChildFacts) -> Decided:
    """Decide what has to be made before there can be a child: all of it is looked at first."""
    if facts.places is None:
        return Need("places")
    for step, found in facts.places.items():
        if isinstance(found, Refusal):
            return _refused_in(facts, step, found)
    return facts


def take_steps(facts: ChildFacts) -> Decided:
    """Decide whether all of that was made."""
    for step, found in (facts.places or {}).items():
        if found is False:
            continue
        if step not in facts.taken:
            return Need("step", step)
        refusal = facts.taken[step]
        if refusal is not None:
            return _refused_in(facts, step, refusal)
    return facts


def _refused_in(facts: ChildFacts, step: StepName, refusal: Refusal) -> RefusedChild:
    return RefusedChild(refusal, facts.plan.facts, step)
