"""An orchestrator of the OpenAI Agents SDK whose tool spawns sub-agents."""

from agents import Agent, Model, function_tool
from subagents import answer_of_subagent


@function_tool
async def spawn_subagent(task: str, agent_id: str | None = None) -> str:
    """Hand a task to a sub-agent and wait for its answer.

    Args:
        task: What the sub-agent is to do; it knows nothing else.
        agent_id: Which agent; your own kind when it is left out.
    """
    return await answer_of_subagent(task, agent_id)


def orchestrator(model: Model | str) -> Agent:
    """Calls of one turn are made side by side."""
    return Agent(
        name="orchestrator",
        model=model,
        tools=[spawn_subagent],
        instructions="Hand out what can be done side by side, then answer from the results.",
    )
