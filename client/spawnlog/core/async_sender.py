"""Send requests: one answer, the items of all pages, lines, and event streams."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from spawnlog.core.answer import (
    LINE_BYTES_MAX,
    AnswerContent,
    Reply,
    ServerAnswer,
    read_answer,
    require_success,
)
from spawnlog.core.errors import InvalidSettingError, Problem, ServerUnreachableError, SpawnlogError
from spawnlog.core.event_stream import EventStream
from spawnlog.core.lines import LineReader
from spawnlog.core.location import ServerAddress, locate_server
from spawnlog.core.pauses import async_prepare, async_sleep
from spawnlog.core.request import ItemT, LinesRequest, PageRequest, Request
from spawnlog.core.request_builder import ANSWER_SECONDS, FAILURES, RequestBuilder
from spawnlog.core.retries import NO_RETRIES, Attempts, RetryLimits

T = TypeVar("T")


class AsyncSender:
    """Sender of requests to one server over a connection pool."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        data_dir: str | Path | None = None,
        address: ServerAddress | None = None,
        retries: RetryLimits | None = None,
        answer_seconds: float = ANSWER_SECONDS,
        agent: str = "spawnlog-python",
    ) -> None:
        self.address = address or locate_server(url, data_dir, os.environ, token=token)
        self.retries = retries or RetryLimits()
        self._requests = RequestBuilder(self.address, answer_seconds, agent)
        self._http = self._requests.opened(httpx2.AsyncClient)

    @classmethod
    def from_environment(cls, *, retries: RetryLimits | None = None) -> Self:
        """Return a client for SPAWNLOG_URL, SPAWNLOG_TOKEN and SPAWNLOG_DATA_DIR.

        The same as a call without arguments. See the class for the defaults.
        """
        return cls(retries=retries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Later calls raise InvalidSetting."""
        await self._http.aclose()

    async def answer(
        self, request: Request[T], retries: RetryLimits | None = None
    ) -> ServerAnswer[T]:
        """Send a request and return its answer. Use it for requests that no method builds.

        Args:
            request: The request to send.
            retries: Retry limits of this request. Default: those of the client.

        Returns:
            The value, with the log position at which it is true.

        Raises:
            Problem: The server refused the request.
            ServerUnreachableError: The server did not answer, or the connection was lost.
            UnexpectedResponseError: The answer cannot be read.
        """
        attempts = Attempts(request, retries or self.retries)
        while True:
            try:
                return read_answer(request, await self._reply(request))
            except (ServerUnreachableError, Problem) as failure:
                pause_seconds = attempts.pause_seconds(failure)
            await async_sleep(pause_seconds)

    async def _items(self, request: PageRequest[Any, ItemT]) -> AsyncIterator[ItemT]:
        """Yield the items of this page and of all later pages."""
        following: PageRequest[Any, ItemT] | None = request
        while following is not None:
            page = await self.answer(following)
            for item in following.items(page.value):
                yield item
            following = following.following(page.value, page.position)

    async def _lines(self, request: LinesRequest[T]) -> AsyncIterator[T]:
        """Yield the lines of an answer as they arrive. Raise StreamCutShort if it ends early."""
        reader = LineReader(request)
        async with self._opened(request, self.retries) as response:
            async for chunk in response.aiter_bytes():
                for line in reader.feed(chunk):
                    yield line
        for line in reader.end():
            yield line

    async def _stream_events(self, stream: EventStream[T]) -> AsyncGenerator[T]:
        """Yield the events of a stream; reconnect as needed."""
        while True:
            request = stream.request()
            try:
                async with self._opened(request) as response:
                    stream.opened(response.headers)
                    async for message in httpx2.EventSource(response, LINE_BYTES_MAX):
                        event = stream.take(message.event, message.id, message.data)
                        if event is not None:
                            yield event
                failure: SpawnlogError = ServerUnreachableError(
                    f"{self.address.url} ended the stream"
                )
            except SpawnlogError as lost:
                failure = lost
            await async_sleep(stream.pause_seconds(failure))

    @asynccontextmanager
    async def _opened(
        self, request: Request[Any], retries: RetryLimits = NO_RETRIES
    ) -> AsyncIterator[httpx2.Response]:
        """Yield a successful response whose body is read as a stream."""
        response = await self._open(request, retries)
        try:
            with self._failures(request):
                yield response
        finally:
            await response.aclose()

    async def _open(self, request: Request[Any], retries: RetryLimits) -> httpx2.Response:
        await async_prepare(request.answers)
        attempts = Attempts(request, retries)
        while True:
            try:
                with self._failures(request):
                    sent = self._requests.request(request, streams=True)
                    response = await self._http.send(sent, stream=True)
                    if response.is_success:
                        return response
                    reply = await self._whole(response)
                require_success(reply)
            except (ServerUnreachableError, Problem) as failure:
                pause_seconds = attempts.pause_seconds(failure)
            await async_sleep(pause_seconds)

    async def _reply(self, request: Request[Any]) -> Reply:
        await async_prepare(request.answers)
        with self._failures(request):
            return await self._whole(
                await self._http.send(self._requests.request(request), stream=True)
            )

    async def _whole(self, response: httpx2.Response) -> Reply:
        content = AnswerContent()
        try:
            async for chunk in response.aiter_bytes():
                content.add(chunk)
        finally:
            await response.aclose()
        return Reply(response.status_code, response.headers, content.whole())

    @contextmanager
    def _failures(self, request: Request[Any]) -> Iterator[None]:
        if self._http.is_closed:
            raise InvalidSettingError("this client is closed: create a new one")
        try:
            yield
        except FAILURES as error:
            raise self._requests.failure(error, request) from None
