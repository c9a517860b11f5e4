"""Model, thinking level and tools of a child, from its agent's configuration."""

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
    """Choose the model of a child.

    Args:
        agent: The agent that will run.
        argument: Model named by the request.
        unnamed_argument: True if the request gives a model that is not a valid name.
        caller: Active model of the requester, if it is the same agent.
    """
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
    """Choose the thinking level of a child.

    Args:
        agent: The agent that will run.
        argument: Level named by the request.
        caller: Active level of the requester, if it is the same agent.
    """
    return plan_thinking(
        argument=argument,
        agent_subagents=agent.thinking,
        defaults_subagents=agent.defaults.thinking,
        caller_active=caller,
    )


def agent_tool_policy(agent: EffectiveAgent, role: Role) -> ToolPolicy:
    """Return the tool policy of the agent's children of this role."""
    tools = agent.tools
    return tool_policy(role, allow=tools.allow, also_allow=tools.also_allow, deny=tools.deny)
