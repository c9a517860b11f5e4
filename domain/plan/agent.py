"""The agent that a run is of, with all that the configuration says of its children."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from domain.configuration.agents import BootstrapLimits, SandboxMode, SubagentDefaults
from domain.configuration.configuration import Configuration, EffectiveSubagents
from domain.configuration.models import Cost, ModelChoice, Models, ModelSetting, ModelSettings
from domain.configuration.runtimes import CommandRuntime, Runtime, served_models_of
from domain.configuration.tools import ConfiguredToolPolicy
from domain.plan.model import ModelPlan, plan_model
from domain.plan.thinking import ThinkingPlan, plan_thinking
from domain.plan.tools import ToolPolicy, tool_policy
from domain.session.events import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveAgent:
    """What holds for the children of one agent, its own word before the defaults'.

    It is resolved once, for the plan of a run as for whoever looks at the configuration, so that
    these cannot differ. `workspace` None is a folder of its own in the data directory; `thinking`
    is the agent's own word, `defaults` have the limits that are the same for all agents.
    """

    id: str
    runtime: Runtime | None
    sandbox_mode: SandboxMode
    workspace: str | None
    thinking: str | None
    subagents: EffectiveSubagents
    defaults: SubagentDefaults
    bootstrap: BootstrapLimits
    tools: ConfiguredToolPolicy
    model_settings: ModelSettings
    aliases: Mapping[str, str]
    known_models: tuple[str, ...]
    models: Models

    @property
    def delivers_to_origin(self) -> bool:
        """Whether the runtime sends results to the thread of a session itself."""
        return isinstance(self.runtime, CommandRuntime) and self.runtime.delivers_to_origin

    def model_plan(
        self,
        *,
        argument: str | None = None,
        unnamed_argument: bool = False,
        caller: str | None = None,
    ) -> ModelPlan:
        """The model of a child. `argument` is the name that its request gives, `unnamed_argument`
        that it gives one which is no name, `caller` the active model of a requester that is the
        same agent."""
        settings = replace(
            self.model_settings,
            argument=argument,
            unnamed_argument=unnamed_argument,
            caller=caller,
        )
        return plan_model(
            settings,
            served=served_models_of(self.runtime),
            aliases=self.aliases,
            known=self.known_models,
        )

    def thinking_plan(
        self, *, argument: str | None = None, caller: str | None = None
    ) -> ThinkingPlan:
        """The level of a child, by its request and by a requester that is the same agent."""
        return plan_thinking(
            argument=argument,
            agent_subagents=self.thinking,
            defaults_subagents=self.defaults.thinking,
            caller_active=caller,
        )

    def cost_of(self, plan: ModelPlan) -> Cost | None:
        """The prices of the model that was chosen; None when they are unknown."""
        return self.models.cost_of(plan.provider or "", plan.model or "")

    def tool_policy(self, role: Role) -> ToolPolicy:
        """The tools of a child of this role."""
        tools = self.tools
        return tool_policy(role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny)


def effective_agent(configuration: Configuration, agent_id: str) -> EffectiveAgent | None:
    """What holds for the children of this agent; None when it is not configured."""
    agent, defaults = configuration.agent(agent_id), configuration.defaults
    if agent is None:
        return None
    own, total = agent.bootstrap_max_chars, agent.bootstrap_total_max_chars
    return EffectiveAgent(
        id=agent.id,
        runtime=configuration.runtime_for(agent.id),
        sandbox_mode=configuration.sandbox_mode_for(agent.id),
        workspace=configuration.workspace_for(agent.id),
        thinking=agent.subagents.thinking,
        subagents=configuration.subagents_for(agent.id),
        defaults=defaults.subagents,
        bootstrap=BootstrapLimits(
            chars_max=defaults.bootstrap_max_chars if own is None else own,
            total_chars_max=defaults.bootstrap_total_max_chars if total is None else total,
        ),
        tools=configuration.tools.subagents.tools,
        model_settings=ModelSettings(
            agent_subagents=_setting(agent.subagents.model),
            defaults_subagents=_setting(defaults.subagents.model),
            agent=_setting(agent.model),
            defaults=_setting(defaults.model),
        ),
        aliases=configuration.model_aliases(),
        known_models=configuration.known_models(),
        models=configuration.models,
    )


def _setting(choice: ModelChoice | None) -> ModelSetting:
    return {"primary": choice.primary, "fallbacks": choice.fallbacks} if choice else None
