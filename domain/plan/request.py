"""What the plan of a run is made from: the run, its agent, and what was found for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from domain.configuration.configuration import EffectiveAgent
from domain.configuration.runtimes import provides_sandbox
from domain.plan.agent import plan_agent_model, plan_agent_thinking
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.plan.model import ModelPlan
from domain.plan.thinking import ThinkingPlan
from domain.run.plan_facts import SandboxFacts, WorkspaceFacts
from domain.run.state import Run


@dataclass(frozen=True, slots=True)
class ChosenWorkspace:
    """The folder that was chosen for a child; `unusable` is why it cannot be had."""

    facts: WorkspaceFacts
    unusable: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What the plan of a run is made from. `thinking_argument` is the text of what was asked for
    and is no level; it is kept beside the log. `credentials` are those of the agent. The folder is
    chosen when nothing else speaks against the child, so that it leaves no trace else."""

    run: Run
    agent: EffectiveAgent
    requester_sandboxed: bool
    thinking_argument: str | None = None
    credentials: FoundCredentials = NOTHING_FOUND
    choose_workspace: Callable[[], ChosenWorkspace]

    @cached_property
    def is_of_same_agent(self) -> bool:
        """Whether the child is of its requester's agent, and so has its model and level."""
        return self.run.is_of_same_agent

    @cached_property
    def sandbox(self) -> SandboxFacts:
        """Whether requester and child are kept apart from the machine."""
        mode = self.agent.sandbox_mode
        return SandboxFacts(
            mode=mode,
            # The session of a child is nobody's main session.
            child_sandboxed=mode != "off",
            runtime_provides=provides_sandbox(self.agent.runtime),
            requester_sandboxed=self.requester_sandboxed or self.run.options.requester_sandboxed,
            required=self.run.options.sandbox == "require",
        )

    @cached_property
    def model(self) -> ModelPlan:
        """The model that the child runs on."""
        run = self.run
        return plan_agent_model(
            self.agent,
            argument=run.options.model,
            unnamed_argument=run.model_argument is not None,
            caller=self._inherited(run.options.active_model or run.requester.model),
        )

    @cached_property
    def thinking(self) -> ThinkingPlan:
        """The level at which the child thinks."""
        return plan_agent_thinking(
            self.agent, argument=self.requested_thinking, caller=self.inherited_thinking
        )

    @property
    def requested_thinking(self) -> str | None:
        """The word for a level that was asked for."""
        return self.thinking_argument or self.run.options.thinking

    @property
    def inherited_thinking(self) -> str | None:
        """The level of a requester that is the same agent."""
        return self._inherited(self.run.options.active_thinking or self.run.requester.thinking)

    @cached_property
    def workspace(self) -> ChosenWorkspace:
        """The folder that the child works in."""
        return self.choose_workspace()

    def _inherited(self, value: str | None) -> str | None:
        return value if self.is_of_same_agent else None
