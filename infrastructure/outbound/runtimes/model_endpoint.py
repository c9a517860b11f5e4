"""Endpoint of a model: requests, fallbacks, and their limits.

Imported only if a model is called, because its dependencies are large.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionStreamOptionsParam
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from domain.configuration.model_runtime import ModelRuntime
from domain.configuration.models import split_model_reference
from infrastructure.outbound.guarded_http.request import PREFIX_SECONDS_MAX, body_prefix

ANSWER_BYTES_MAX = 64 * 1024 * 1024
"""Maximum bytes of one answer, as transferred."""
TOOL_ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""Maximum bytes of one answer of a tool server.

It is lower because the answer, which may contain the result twice, is parsed on the event loop, and
only one transcript entry of it is kept.
"""


CONNECT_SECONDS = 5.0


class ResponseTooLongError(httpx2.StreamError):
    """An answer exceeded its limit."""


class _CountedBytes(httpx2.AsyncByteStream):
    """Body that raises AnswerTooLong beyond a limit."""

    def __init__(self, body: httpx2.AsyncByteStream, bytes_max: int) -> None:
        self._body = body
        self._bytes_max = bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self._body:
            count += len(part)
            if count > self._bytes_max:
                raise ResponseTooLongError(f"the answer has more than {self._bytes_max} bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


async def _without_rest(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    """Return an error response with the beginning of its body.

    The status decides what to do, and reading a broken or slow body would hide it.
    """
    try:
        deadline = asyncio.get_running_loop().time() + PREFIX_SECONDS_MAX
        content = await body_prefix(response, deadline)
    finally:
        await response.aclose()
    framing = ("content-length", "transfer-encoding")
    headers = [
        header for header in response.headers.multi_items() if header[0].lower() not in framing
    ]
    return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Transport that refuses redirects, encoded answers and answers that are too long.

    Redirects are refused because the credentials are for this endpoint only. Encoded answers are
    refused because their length is unknown.

    Args:
        sent: Names of the headers to send; all others are dropped. None sends all.
        bytes_max: Maximum bytes of an answer. Default: `ANSWER_BYTES_MAX`.
    """

    def __init__(
        self, sent: Collection[str] | None = None, *, bytes_max: int | None = None
    ) -> None:
        self._sent = sent
        self._bytes_max = bytes_max or ANSWER_BYTES_MAX
        self._wrapped = httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response, with its body counted while it is read."""
        request.headers["Accept-Encoding"] = "identity"
        for name in list(request.headers) if self._sent is not None else ():
            if name.lower() not in (self._sent or ()):
                del request.headers[name]
        response = await self._wrapped.handle_async_request(request)
        if response.is_redirect:
            await response.aclose()
            raise httpx2.RemoteProtocolError("answered with a redirect, which is not followed")
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("answered in an encoding that was not requested")
        if response.is_error:
            return await _without_rest(response, request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _CountedBytes(response.stream, self._bytes_max)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wrapped.aclose()


def bounded_client(
    silence_seconds: float,
    headers: Mapping[str, str] | None = None,
    *,
    sent: Collection[str] | None = None,
    bytes_max: int | None = None,
) -> httpx2.AsyncClient:
    """Return a client with a bounded transport that ignores proxies in the server's environment.

    Args:
        silence_seconds: Timeout without a byte.
        headers: Headers of each request.
        sent: See `BoundedTransport`.
        bytes_max: See `BoundedTransport`.
    """
    return httpx2.AsyncClient(
        transport=BoundedTransport(sent, bytes_max=bytes_max),
        headers=headers,
        follow_redirects=False,
        trust_env=False,
        timeout=httpx2.Timeout(silence_seconds, connect=CONNECT_SECONDS),
    )


class _AnsweringModel(WrapperModel):
    """Model of the endpoint that reports when it answers.

    All attempts to open an answer together take at most `seconds`.
    """

    def __init__(
        self, model: Model, reference: str, seconds: float, answering: Callable[[str], None]
    ) -> None:
        super().__init__(model)
        self._reference = reference
        self._seconds = seconds
        self._answering = answering

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Yield the answer once it has begun."""
        async with AsyncExitStack() as stack:
            opening = self.wrapped.request_stream(
                messages, model_settings, model_request_parameters, run_context
            )
            try:
                async with asyncio.timeout(self._seconds):
                    response = await stack.enter_async_context(opening)
            except TimeoutError:
                text = f"did not begin to answer within {self._seconds:g} s"
                raise ModelAPIError(self.model_name, text) from None
            self._answering(self._reference)
            yield response


# Other headers that the library adds describe the machine, or come from its own variables.
_SENT = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
# Without a finish reason, the end of an answer looks like a lost connection.
_PROFILE: OpenAIModelProfile = {"openai_chat_streaming_requires_finish_reason": True}


def endpoint_client(runtime: ModelRuntime) -> httpx2.AsyncClient:
    """Return a client for the endpoint. It sends nothing from the server's environment."""
    sent = _SENT if runtime.api_key is None else _SENT | {"authorization"}
    return bounded_client(runtime.timeout_seconds, sent=sent)


class _CountingModel(OpenAIChatModel):
    """Model that takes the last token count of an answer.

    Some endpoints send a running total with each piece. The model does not ask them to.
    """

    def _get_stream_options(
        self,
        model_settings: OpenAIChatModelSettings,  # noqa: ARG002
    ) -> ChatCompletionStreamOptionsParam:
        return {"include_usage": True}


def endpoint_model(
    runtime: ModelRuntime,
    client: httpx2.AsyncClient,
    references: Sequence[str],
    values: Mapping[str, str],
    answering: Callable[[str], None],
) -> Model:
    """Return the first model, with the others as fallbacks.

    The endpoint knows a model by its name without the provider.

    Args:
        runtime: The runtime.
        client: Client for the endpoint.
        references: Models as `provider/name`, in order.
        values: Resolved `baseUrl` and `apiKey`.
        answering: Called with the reference of the model that answers.
    """
    openai = AsyncOpenAI(
        base_url=values["baseUrl"],
        api_key=values.get("apiKey", "none"),
        max_retries=runtime.attempts_max - 1,
        http_client=client,
    )
    provider = OpenAIProvider(openai_client=openai)
    models = [
        _AnsweringModel(
            _CountingModel(
                split_model_reference(reference)[1] or reference,
                provider=provider,
                profile=_PROFILE,
            ),
            reference,
            runtime.answer_within_seconds,
            answering,
        )
        for reference in references
    ]
    return models[0] if len(models) == 1 else FallbackModel(models[0], *models[1:])
