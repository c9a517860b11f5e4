"""Real server for scripts at a URL that notes requests and answers byte by byte."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came; names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answering = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def answer(
    body: bytes = b"", status: str = "200 OK", *headers: str, length: int | None = None
) -> bytes:
    """Return a whole response in bytes."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    """Return a redirect to this location."""
    return answer(b"", status, f"Location: {location}")


class ScriptServer:
    """Server that answers 404 by default. Use it in an `async with` statement."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._answers: dict[str, Answering] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: list[Asked] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def open(self) -> int:
        """Return the number of connections."""
        return len(self._tasks)

    def at(self, path: str, answers: bytes | Answering, host: str = "127.0.0.1") -> str:
        """Answer so at this path from now on; gives its URL."""
        self._answers[path] = _once(answers) if isinstance(answers, bytes) else answers
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            request = await _read(reader)
            self.asked.append(request)
            path = request.target.partition("?")[0]
            answering = self._answers.get(path) or _once(answer(b"", "404 Not Found"))
            await _while_there(answering(request, writer), reader)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # No caller waits for it any more.
        finally:
            self._tasks.discard(task)
            writer.close()


async def _while_there(work: Awaitable[None], reader: asyncio.StreamReader) -> None:
    """Cancel the work if the other side disconnects."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head.strip().split("\r\n")
    method, target, _ = line.split(" ")
    headers = {}
    for item in lines:
        name, _, value = item.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)


def _once(data: bytes) -> Answering:
    async def say(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return say
