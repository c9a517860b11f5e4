"""The orchestrator of pydantic-ai with a model that follows a script."""

import asyncio
import json

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_tool import orchestrator
from script import TASKS, answer_from


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Make two calls at once, then return their results."""
    (offered,) = info.function_tools
    came = [
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    if came:
        return ModelResponse(parts=[TextPart(answer_from(came))])
    return ModelResponse(parts=[ToolCallPart(offered.name, task) for task in TASKS])


ended = asyncio.run(orchestrator(FunctionModel(scripted)).run("Look around"))
print(json.dumps({"answer": ended.output}))
