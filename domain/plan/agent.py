"""What a child of an agent gets by its configuration: its model, its thinking, its tools."""

from dataclasses import replace

from domain.configuration.configuration import EffectiveAgent
from domain.configuration.runtimes import served_models_of
from domain.plan.model import ModelPlan, plan_model
from domain.plan.thinking import ThinkingPlan, plan_thinking
from domain.plan.tools import ToolPolicy, tool_policy
from domain.values.role import Role


def plan_agent_model(
    agent: EffectiveAgent,
    *,
    argument: str | None = None,
    unnamed_argument: bool = False,
    caller: str | None = None,
) -> ModelPlan:
    """The model of a child. `argument` is the name that its request gives, `unnamed_argument` that
    it gives one which is no name, `caller` the active model of a requester that is the same
    agent."""
    settings = replace(
        agent.model_settings, argument=argument, unnamed_argument=unnamed_argument, caller=caller
    )
    return plan_model(
        settings,
        served=served_models_of(agent.runtime),
        aliases=agent.aliases,
        known=agent.known_models,
    )


def plan_agent_thinking(
    agent: EffectiveAgent, *, argument: str | None = None, caller: str | None = None
) -> ThinkingPlan:
    """The level of a child, by its request and by a requester that is the same agent."""
    return plan_thinking(
        argument=argument,
        agent_subagents=agent.thinking,
        defaults_subagents=agent.defaults.thinking,
        caller_active=caller,
    )


def agent_tool_policy(agent: EffectiveAgent, role: Role) -> ToolPolicy:
    """The tools of a child of this role."""
    tools = agent.tools
    return tool_policy(role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny)
