"""An orchestrator of LangGraph whose tool spawns sub-agents."""

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from subagents import answer_of_subagent


@tool
async def spawn_subagent(task: str, agent_id: str | None = None) -> str:
    """Hand a task to a sub-agent and wait for its answer. It knows nothing but the task; without
    an agent_id it is of your own kind."""
    return await answer_of_subagent(task, agent_id)


def orchestrator(model: BaseChatModel) -> CompiledStateGraph:
    """Model and tools in turns; calls of one turn are made side by side."""
    thinking = model.bind_tools([spawn_subagent])

    async def think(state: MessagesState) -> dict:
        return {"messages": [await thinking.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([spawn_subagent]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    return graph.compile()
