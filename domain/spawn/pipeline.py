"""Decision stages for a child, as pure functions of the facts so far.

A stage returns the facts with its decision, a refusal, or a need: something that must be looked up
or done before it can decide. The answer to a need is one more fact, and all stages run again. A
server meets the need and records it; after a crash another server continues from the record. A
what-if answers it from the record, or reports that it is missing.

`domain/spawn/stages.py` defines their order.
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
"""Size of the plan cache. A cached plan has no folder; it depends on the agent, the configuration
revision, the credentials and the shape of the request."""


@dataclass(frozen=True, slots=True)
class Need:
    """Fact that a stage needs before it can decide.

    Attributes:
        fact: `agent`: the agent that will run, after its context scripts have run. `credentials`,
            `workspace`: those of that agent. `places`: whether each step has anything to do, in
            order, up to the first that is impossible. `step`: the result of taking a step.
        step: The step, if `fact` is `step`.
    """

    fact: Literal["agent", "credentials", "workspace", "places", "step"]
    step: StepName | None = None


class ChildFacts(Fact):
    """Facts about a child so far; None means not looked up yet.

    Attributes:
        run: Its run, as admitted.
        configuration: The configuration that decides.
        requester_sandboxed: Whether the requesting session is in a sandbox.
        thinking_argument: The given thinking level, if it is not a valid one.
        agent_id: The agent that will run.
        credentials: The credentials of this agent.
        workspace: The chosen folder.
        frame: The plan without the folder.
        planned: The plan.
        places: For each step, whether there is anything to do, or why it is impossible; steps after
            an impossible one are absent.
        taken: For each step that was taken, None or the refusal.
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
        """Return the plan, which must be decided by now."""
        assert self.planned is not None
        return self.planned

    @property
    def agent(self) -> EffectiveAgent:
        """Return the configuration of the agent that will run."""
        assert self.agent_id is not None
        return self.configuration.effective_agent(self.agent_id)

    def with_step(self, step: StepName, refusal: Refusal | None) -> "ChildFacts":
        """Return the facts with the result of a step."""
        return self.changed({"taken": {**self.taken, step: refusal}})


Decided = ChildFacts | RefusedChild | Need
"""The facts with the decision, a refusal, or a need."""


def choose_agent(facts: ChildFacts) -> Decided:
    """Choose the agent that runs: the requested one, or an override by a context script."""
    return Need("agent") if facts.agent_id is None else facts


def frame_spawn(facts: ChildFacts) -> Decided:
    """Decide the plan of a spawn without its folder; equal for all requests of the same shape."""
    # A text that can be erased must not be cached.
    return _framed(facts, ELIGIBILITY, is_kept=facts.thinking_argument is None)


def frame_message(facts: ChildFacts) -> Decided:
    """Decide the plan of a continued session without its folder."""
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
    """Decide whether a child can work in its folder, and complete its plan."""
    return _settled(facts, ELIGIBILITY)


def settle_message(facts: ChildFacts) -> Decided:
    """Decide whether a session can continue in its folder, and complete its plan."""
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
    """Decide which steps the preparation needs; all are checked before any is taken."""
    if facts.places is None:
        return Need("places")
    for step, found in facts.places.items():
        if isinstance(found, Refusal):
            return _refused_in(facts, step, found)
    return facts


def take_steps(facts: ChildFacts) -> Decided:
    """Decide whether all needed steps succeeded."""
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
