"""What the plan of a run is made from: the run, its agent, and what was found for them."""

from dataclasses import dataclass, field
from functools import cached_property

from domain.configuration.configuration import EffectiveAgent
from domain.configuration.runtimes import provides_sandbox
from domain.plan.agent import plan_agent_model, plan_agent_thinking
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.plan.model import ModelPlan
from domain.plan.thinking import ThinkingPlan
from domain.run.facts import SpawnOptions
from domain.run.plan_facts import SandboxFacts, WorkspaceFacts
from domain.run.state import Run
from domain.values.record import Fact


@dataclass(frozen=True, slots=True)
class ChosenWorkspace:
    """The folder that was chosen for a child.

    Attributes:
        facts: Which folder that is, and whose.
        unusable: Why it cannot be had.
        warnings: What the caller is told of the choice.
    """

    facts: WorkspaceFacts
    unusable: str | None = None
    warnings: tuple[str, ...] = ()


class RequestShape(Fact):
    """What of a run its plan goes by. Requests of one shape have one plan, whatever their tasks and
    labels are.

    `has_unnamed_model` is whether what was given as the model is no name of one.
    """

    requested_agent_id: str | None
    is_message: bool
    is_of_same_agent: bool
    depth: int
    options: SpawnOptions
    has_unnamed_model: bool
    requester_model: str | None
    requester_thinking: str | None


def shape_of(run: Run) -> RequestShape:
    """Return the shape of the request of a run, by the agent that will run."""
    return RequestShape(
        requested_agent_id=run.requested_agent_id,
        is_message=run.continues is not None,
        is_of_same_agent=run.is_of_same_agent,
        depth=run.depth,
        options=run.options,
        has_unnamed_model=run.model_argument is not None,
        requester_model=run.requester.model,
        requester_thinking=run.requester.thinking,
    )


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What the plan of a run is made from.

    Attributes:
        shape: What of the run its plan goes by.
        agent: The agent that will run.
        requester_sandboxed: Whether its requester is in a sandbox.
        thinking_argument: The text of what was asked for and is no level; it is kept beside the
            log.
        credentials: Those of the agent.
        chosen: The folder. The frame of a plan has none, so two requests that differ in it alone
            are equal.
    """

    shape: RequestShape
    agent: EffectiveAgent
    requester_sandboxed: bool
    thinking_argument: str | None = None
    credentials: FoundCredentials = NOTHING_FOUND
    chosen: ChosenWorkspace | None = field(default=None, compare=False)

    @cached_property
    def sandbox(self) -> SandboxFacts:
        """Return whether requester and child are kept apart from the machine."""
        mode = self.agent.sandbox_mode
        return SandboxFacts(
            mode=mode,
            # The session of a child is nobody's main session.
            child_sandboxed=mode != "off",
            runtime_provides=provides_sandbox(self.agent.runtime),
            requester_sandboxed=self.requester_sandboxed or self.shape.options.requester_sandboxed,
            required=self.shape.options.sandbox == "require",
        )

    @cached_property
    def model(self) -> ModelPlan:
        """Return the model that the child runs on."""
        shape = self.shape
        return plan_agent_model(
            self.agent,
            argument=shape.options.model,
            unnamed_argument=shape.has_unnamed_model,
            caller=self._inherited(shape.options.active_model or shape.requester_model),
        )

    @cached_property
    def thinking(self) -> ThinkingPlan:
        """Return the level at which the child thinks."""
        return plan_agent_thinking(
            self.agent, argument=self.requested_thinking, caller=self.inherited_thinking
        )

    @property
    def requested_thinking(self) -> str | None:
        """Return the word for a level that was asked for."""
        return self.thinking_argument or self.shape.options.thinking

    @property
    def inherited_thinking(self) -> str | None:
        """Return the level of a requester that is the same agent."""
        return self._inherited(self.shape.options.active_thinking or self.shape.requester_thinking)

    @property
    def workspace(self) -> ChosenWorkspace:
        """Return the folder that the child works in."""
        assert self.chosen is not None
        return self.chosen

    def _inherited(self, value: str | None) -> str | None:
        return value if self.shape.is_of_same_agent else None
