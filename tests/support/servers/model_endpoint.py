"""Real endpoint of the OpenAI protocol that sends given answers, chunk by chunk."""

import asyncio
import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, Self

from tests.support.servers.script_server import Asked, ScriptServer, answer

KEY = "sk-key-of-the-endpoint-7f3a91"

HANG = object()
"""Send nothing more, and keep the connection open."""


CUT = object()
"""Close the connection."""


Step = bytes | float | object
"""Bytes, seconds to wait, or the end."""


def event(value: dict[str, Any] | str) -> bytes:
    """Return an event of the stream."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"data: {text}\n\n".encode()


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """Return a chunk of an answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_HEAD, "choices": [choice]})


_HEAD = {"id": "one", "object": "chat.completion.chunk", "created": 1, "model": "as-it-is-called"}


def text(words: str) -> bytes:
    """Return a chunk with text."""
    return chunk({"role": "assistant", "content": words})


def call(name: str, number: int = 0, /, **arguments: Any) -> bytes:
    """Return a chunk with a tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    tool_call = {
        "index": number,
        "id": f"call-{name}-{number}",
        "type": "function",
        "function": function,
    }
    return chunk({"role": "assistant", "tool_calls": [tool_call]})


def usage(taken: int, given: int, cached: int = 0) -> bytes:
    """Return a chunk with token counts."""
    counts: dict[str, Any] = {
        "prompt_tokens": taken,
        "completion_tokens": given,
        "total_tokens": taken + given,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return event({**_HEAD, "choices": [], "usage": counts})


DONE = event("[DONE]")


def said(*steps: Step, calls: bool = False) -> tuple[Step, ...]:
    """Return a whole answer of these chunks. Token counts follow its end, as endpoints send
    them.
    """
    pieces = [step for step in steps if not (isinstance(step, bytes) and b'"choices": []' in step)]
    counts = [step for step in steps if step not in pieces]
    return (*pieces, chunk({}, "tool_calls" if calls else "stop"), *counts, DONE)


def error(status: str, message: str, *headers: str) -> bytes:
    """Return a whole error response."""
    body = json.dumps({"error": {"message": message}}).encode()
    return answer(body, status, "Content-Type: application/json", *headers)


class ModelEndpoint:
    """Endpoint that sends the next of its model's answers to each request, and repeats the last
    one.

    Use it in an `async with` statement, or, for a thread of its own, in a `with` statement.
    """

    def __init__(self) -> None:
        self.server = ScriptServer()
        self._answers: dict[str, deque[tuple[Step, ...] | bytes]] = defaultdict(deque)

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        self.server.at("/v1/chat/completions", self._meet)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def __enter__(self) -> Self:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()

        async def serve() -> None:
            async with self:
                started.set()
                await self._over.wait()

        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(serve(),))
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        """Return the `baseUrl` for a runtime."""
        return f"http://127.0.0.1:{self.server.port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Return the bodies of all requests."""
        return [json.loads(request.body) for request in self.server.asked]

    def answers(self, model: str, *answers: Iterable[Step] | bytes) -> None:
        """Set the next answers of this model; bytes are a whole HTTP response."""
        self._answers[model] = deque(
            answer if isinstance(answer, bytes) else tuple(answer) for answer in answers
        )

    async def _meet(self, request: Asked, writer: asyncio.StreamWriter) -> None:
        answers = self._answers[json.loads(request.body)["model"]]
        if not answers:
            writer.write(error("404 Not Found", "no such model"))
            return
        said_now = answers.popleft() if len(answers) > 1 else answers[0]
        if isinstance(said_now, bytes):
            writer.write(said_now)
            return
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for step in said_now:
            await self._take_step(step, writer)
            if step is CUT:
                return

    async def _take_step(self, step: Step, writer: asyncio.StreamWriter) -> None:
        match step:
            case bytes():
                writer.write(step)
                await writer.drain()
            case float():
                await asyncio.sleep(step)
            case _ if step is CUT:
                writer.transport.abort()
            case _:
                await asyncio.Event().wait()
