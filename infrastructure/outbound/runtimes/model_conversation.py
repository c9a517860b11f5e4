"""Conversation with a model: the requests, and the transcript entries made of the answers.

Imported only if a model is called, because its dependencies are large.
"""

import asyncio
import time
from collections.abc import AsyncIterable
from contextlib import AsyncExitStack
from dataclasses import replace
from types import NoneType

from pydantic_ai import Agent, AgentRun
from pydantic_ai.exceptions import ModelAPIError, UsageLimitExceeded
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.openai import OpenAIChatModelSettings
from pydantic_ai.usage import RequestUsage, UsageLimits

from application.ports.runtimes import Launch
from domain.configuration.model_runtime import ModelRuntime
from domain.delivery.transcript import (
    LINE_BYTES_MAX,
    MessageEntry,
    ProgressEntry,
    ToolEntry,
    UsageEntry,
)
from domain.plan.tools import YIELD_TOOL
from domain.values.json_text import NotJsonError, read_json
from domain.values.text import replace_unstorable
from infrastructure.outbound.runtimes.entry_queue import EntryQueue, OutputLimitError
from infrastructure.outbound.runtimes.model_endpoint import (
    ResponseTooLongError,
    endpoint_client,
    endpoint_model,
)
from infrastructure.outbound.runtimes.model_history import earlier_messages
from infrastructure.outbound.runtimes.model_tools import ToolsUnavailableError, opened_tools

TOOL_MISTAKES_MAX = 5
"""Maximum consecutive calls of a tool that is missing or called wrongly."""


_EFFORTS = {
    "minimal": "minimal",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}


MESSAGE_BYTES_MAX = LINE_BYTES_MAX - 4096
"""Maximum bytes of one message. The rest of an entry is room for growth of the text by masking."""

_CUT_OFF = "the endpoint cut the answer off at its token limit"


class ConversationError(Exception):
    """The conversation ended without an answer. `reason` is the recorded word."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def effort_of(thinking: str | None) -> str | None:
    """Return the `reasoning_effort` of a thinking level; None to leave it to the model.

    Endpoints know nothing above `high`, so higher levels map to it.
    """
    return _EFFORTS.get(thinking or "")


async def converse(
    launch: Launch, runtime: ModelRuntime, references: tuple[str, ...], entries: EntryQueue
) -> None:
    """Hold a conversation to its end. If it is cancelled, the text until then is still recorded.

    Args:
        launch: The launch.
        runtime: Its runtime.
        references: Models as `provider/name`, the first one with its fallbacks.
        entries: Gets the entries.

    Raises:
        ConversationError: The conversation ended without an answer.
    """
    try:
        await _Conversation(launch, runtime, references, entries).hold()
    except ConversationError:
        raise
    except ToolsUnavailableError as error:
        raise ConversationError("not_executable", str(error)) from error
    except UsageLimitExceeded as error:
        text = f"ended by a limit of its runtime: {error}"
        raise ConversationError("usage_limit", text) from error
    except OutputLimitError as error:
        raise ConversationError("output_limit", f"ended because {error}") from error
    except Exception as error:
        too_long = _cause_of(error)
        if too_long is not None:
            raise ConversationError("output_limit", f"ended because {too_long}") from error
        raise ConversationError("exit", _failure_text(error)) from error


def _cause_of(error: BaseException) -> ResponseTooLongError | None:
    """Return the AnswerTooLong that a library reported as a connection error, or None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ResponseTooLongError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _failure_text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_failure_text(inner) for inner in error.exceptions))
    kind = "the endpoint failed" if isinstance(error, ModelAPIError) else "the conversation failed"
    return f"{kind}: {str(error) or type(error).__name__}"


class _Conversation:
    def __init__(
        self,
        launch: Launch,
        runtime: ModelRuntime,
        references: tuple[str, ...],
        entries: EntryQueue,
    ) -> None:
        self._launch = launch
        self._runtime = runtime
        self._references = references
        self._entries = entries
        self._answering = references[0]
        self._unmeasured = 0
        self._measured = 0
        self._tokens = 0
        self._message_parts: list[str] = []
        self._message_bytes = 0
        self._calls: dict[str, tuple[ToolEntry, float]] = {}
        self._has_yielded = False

    async def hold(self) -> None:
        """Hold the conversation, then record unfinished texts and calls."""
        try:
            async with AsyncExitStack() as connections:
                await self._hold(connections)
        finally:
            self._record_unfinished()
            self._record_uncounted()

    async def _hold(self, connections: AsyncExitStack) -> None:
        launch, runtime = self._launch, self._runtime
        history = await self._earlier()
        client = await connections.enter_async_context(endpoint_client(runtime))
        model = endpoint_model(
            runtime, client, self._references, launch.environment, self._take_answering
        )
        agent = Agent(
            model,
            instructions=launch.system_prompt or None,
            output_type=[str, NoneType],
            retries=TOOL_MISTAKES_MAX,
            toolsets=await opened_tools(launch, runtime, connections),
        )
        effort = effort_of(launch.thinking)
        settings = OpenAIChatModelSettings(openai_continuous_usage_stats=True)
        if effort:
            settings["extra_body"] = {"reasoning_effort": effort}
        limits = UsageLimits(
            request_limit=runtime.requests_max,
            tool_calls_limit=runtime.tool_calls_max,
        )
        run = await connections.enter_async_context(
            agent.iter(
                launch.message,
                message_history=history,
                model_settings=settings,
                usage_limits=limits,
            )
        )
        await self._follow(run)

    async def _earlier(self) -> list[ModelMessage]:
        try:
            return await asyncio.to_thread(earlier_messages, self._launch.history_files)
        except OSError as error:
            text = f"the transcript of the session cannot be read: {error.strerror}"
            raise ConversationError("not_executable", text) from None

    async def _follow(self, run: AgentRun[None, str | None]) -> None:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as answer:
                    await self._take_events(answer)
                    await self._take_usage(answer.response.usage)
                    reason = answer.response.finish_reason
                    if reason == "length":
                        raise OutputLimitError(_CUT_OFF)
                    if reason not in ("stop", "tool_call"):
                        text = f"the endpoint ended its answer with {reason or 'an unknown reason'}"
                        raise ConversationError("exit", text)
            elif Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as events:
                    await self._take_events(events)
            if self._has_yielded:
                return

    def _take_answering(self, reference: str) -> None:
        self._answering = reference

    async def _take_events(self, events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    self._hear(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    self._hear(text)
                case PartEndEvent(part=TextPart()):
                    await self._record_message()
                case PartEndEvent(part=ThinkingPart(content=text)) if text.strip():
                    await self._entries.put(ProgressEntry(replace_unstorable(text)))
                case FunctionToolCallEvent(part=call):
                    entry = ToolEntry(
                        replace_unstorable(call.tool_name),
                        replace_unstorable(_written(call)),
                        None,
                    )
                    self._calls[call.tool_call_id] = entry, time.monotonic()
                case FunctionToolResultEvent(part=ToolReturnPart() as result):
                    await self._take_result(result)
                case _:
                    pass

    def _hear(self, text: str) -> None:
        self._message_parts.append(text)
        self._message_bytes += len(text.encode(errors="surrogatepass"))
        if self._message_bytes > MESSAGE_BYTES_MAX:
            raise OutputLimitError(f"it wrote more than {MESSAGE_BYTES_MAX} bytes in one message")

    def _take_message(self) -> MessageEntry | None:
        text = replace_unstorable("".join(self._message_parts))
        self._message_parts.clear()
        self._message_bytes = 0
        if len(text) * 4 > MESSAGE_BYTES_MAX:
            text = text.encode()[:MESSAGE_BYTES_MAX].decode(errors="ignore")
        return MessageEntry("assistant", text) if text.strip() else None

    async def _record_message(self) -> None:
        message = self._take_message()
        if message is not None:
            await self._entries.put(message)

    async def _take_result(self, result: ToolReturnPart) -> None:
        output = replace_unstorable(result.model_response_str())
        entry = ToolEntry(replace_unstorable(result.tool_name), None, output)
        if result.tool_call_id in self._calls:
            call, began = self._calls[result.tool_call_id]
            took = round((time.monotonic() - began) * 1000)
            entry = replace(entry, input=call.input, duration_ms=took)
        await self._entries.put(entry)
        # Keep the call until its result was added: if that is too large, the call is recorded.
        self._calls.pop(result.tool_call_id, None)
        if result.tool_name == YIELD_TOOL and _is_yielded(output):
            self._has_yielded = True

    async def _take_usage(self, usage: RequestUsage) -> None:
        if not (usage.input_tokens or usage.output_tokens):
            self._unmeasured += 1
            return
        self._measured += 1
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        entry = UsageEntry(
            # Cached tokens are counted separately.
            input_tokens=max(0, usage.input_tokens - cached),
            output_tokens=usage.output_tokens,
            model=self._answering,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
        )
        await self._entries.put(entry)
        self._tokens += usage.input_tokens + usage.output_tokens
        if self._tokens > self._runtime.tokens_max:
            text = (
                f"it used {self._tokens} tokens; its limit is {self._runtime.tokens_max}"
                " (tokensMax)"
            )
            raise UsageLimitExceeded(text)

    def _record_uncounted(self) -> None:
        """Record how many answers had no token count, if others had one."""
        if self._unmeasured and self._measured:
            text = (
                f"{self._unmeasured} of {self._unmeasured + self._measured} answers reported no"
                " token count: more tokens were used than are counted"
            )
            self._entries.put_last(ProgressEntry(text))

    def _record_unfinished(self) -> None:
        """Record the text of an interrupted answer, and the calls without a result."""
        message = self._take_message()
        if message is not None:
            self._entries.put_last(message)
        for call, _ in self._calls.values():
            self._entries.put_last(call)
        self._calls.clear()


def _written(call: ToolCallPart) -> str:
    """Return the arguments as the model wrote them, which may be invalid JSON."""
    return call.args if isinstance(call.args, str) else call.args_as_json_str()


def _is_yielded(output: str) -> bool:
    try:
        answer = read_json(output)
    except NotJsonError:
        return False
    return isinstance(answer, dict) and answer.get("status") == "yielded"
