"""The orchestrator of the OpenAI Agents SDK with a model that follows a script."""

import asyncio
import json

from agents import Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openai_agents_tool import orchestrator
from script import TASKS, answer_from


class Scripted(Model):
    """Model that makes two calls at once, then returns their results."""

    async def get_response(self, system_instructions, input, model_settings, tools, *_, **__):
        """Return the turn after the conversation so far."""
        (offered,) = tools
        items = input if isinstance(input, list) else []
        came = [item["output"] for item in items if item.get("type") == "function_call_output"]
        output = (
            [_message(answer_from(came))]
            if came
            else [
                ResponseFunctionToolCall(
                    type="function_call",
                    name=offered.name,
                    call_id=f"call-{number}",
                    arguments=json.dumps({"agent_id": None, **task}),
                )
                for number, task in enumerate(TASKS)
            ]
        )
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


def _message(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[part]
    )


set_tracing_disabled(True)
ended = asyncio.run(Runner.run(orchestrator(Scripted()), "Look around"))
print(json.dumps({"answer": ended.final_output}))
