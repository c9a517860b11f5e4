"""The orchestrator of LangGraph with a model that follows a script."""

import asyncio
import json

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph_tool import orchestrator
from script import TASKS, answer_from


class Scripted(BaseChatModel):
    """Model that makes two calls at once, then returns their results."""

    offered: list[str] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **_):
        """Return a model that knows these tools."""
        return Scripted(offered=[one.name for one in tools])

    def _generate(self, messages, stop=None, run_manager=None, **_):
        came = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
        (name,) = self.offered
        calls = [
            {"name": name, "args": asked, "id": f"call-{number}"}
            for number, asked in enumerate(TASKS)
        ]
        said = AIMessage(answer_from(came)) if came else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=said)])


begin = {"messages": [HumanMessage("Look around")]}
ended = asyncio.run(orchestrator(Scripted()).ainvoke(begin))
print(json.dumps({"answer": ended["messages"][-1].content}))
