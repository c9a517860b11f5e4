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
        return Scripted(offered=[tool.name for tool in tools])

    def _generate(self, messages, stop=None, run_manager=None, **_):
        came = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
        (name,) = self.offered
        calls = [
            {"name": name, "args": task, "id": f"call-{number}"}
            for number, task in enumerate(TASKS)
        ]
        output = AIMessage(answer_from(came)) if came else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=output)])


begin = {"messages": [HumanMessage("Look around")]}
ended = asyncio.run(orchestrator(Scripted()).ainvoke(begin))
print(json.dumps({"answer": ended["messages"][-1].content}))
