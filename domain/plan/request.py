"""Input of a run's plan: the run, its agent, and the resources found for them."""

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
    """The workspace chosen for a child.

    Attributes:
        facts: Path of the workspace, and where it comes from.
        unusable: Reason why it cannot be used; None if it can.
        warnings: Warnings for the caller about the choice.
    """

    facts: WorkspaceFacts
    unusable: str | None = None
    warnings: tuple[str, ...] = ()


class RequestShape(Fact):
    """The properties of a run that its plan depends on.

    Requests of one shape share one plan, whatever their tasks and labels. `has_unnamed_model` is
    True if the requested model is not a valid name.
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
    """Return the shape of a run's request, for the agent that will run."""
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
    """Input of a run's plan.

    Attributes:
        shape: Properties of the run that the plan depends on.
        agent: Agent that will run.
        requester_sandboxed: True if the requester is in a sandbox.
        thinking_argument: Text of a requested level that is invalid; stored beside the log.
        credentials: Credentials of the agent.
        chosen: Workspace. Ignored in comparisons, because plan frames do not depend on it.
    """

    shape: RequestShape
    agent: EffectiveAgent
    requester_sandboxed: bool
    thinking_argument: str | None = None
    credentials: FoundCredentials = NOTHING_FOUND
    chosen: ChosenWorkspace | None = field(default=None, compare=False)

    @cached_property
    def sandbox(self) -> SandboxFacts:
        """Return the sandbox state of requester and child."""
        mode = self.agent.sandbox_mode
        return SandboxFacts(
            mode=mode,
            # A child's session is never a main session, so `non-main` always applies.
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
        """Return the thinking level of the child."""
        return plan_agent_thinking(
            self.agent, argument=self.requested_thinking, caller=self.inherited_thinking
        )

    @property
    def requested_thinking(self) -> str | None:
        """Return the requested thinking level as given, or None."""
        return self.thinking_argument or self.shape.options.thinking

    @property
    def inherited_thinking(self) -> str | None:
        """Return the requester's level if it is the same agent, else None."""
        return self._inherited(self.shape.options.active_thinking or self.shape.requester_thinking)

    @property
    def workspace(self) -> ChosenWorkspace:
        """Return the workspace of the child. Requires `chosen`."""
        assert self.chosen is not None
        return self.chosen

    def _inherited(self, value: str | None) -> str | None:
        return value if self.shape.is_of_same_agent else None
